// Command docscheck checks that what the Markdown files of a folder refer to exists: files and headings that they link
// to, and make targets that they name. It also wants a description for each public target of the Makefile.
//
//	go run ./hack/docscheck .
package main

import (
	"fmt"
	"os"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	problems, err := check(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "docscheck:", err)
		os.Exit(2)
	}
	for _, problem := range problems {
		fmt.Println(problem)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}
