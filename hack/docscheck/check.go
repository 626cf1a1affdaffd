package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	fence      = regexp.MustCompile("(?ms)^[ \t]*```.*?\n[ \t]*```[ \t]*$")
	inlineCode = regexp.MustCompile("`[^`\n]+`")
	link       = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	scheme     = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
	heading    = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *#*$`)
	notInSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	makeCall   = regexp.MustCompile("(?m)(?:^|`)[ \t]*(?:\\$ )?make ([a-z][a-z0-9-]*)")
	phony      = regexp.MustCompile(`(?m)^\.PHONY: *(.+)$`)
	documented = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):[^=\n]*## `)
)

// check returns what is wrong under root, sorted by file. An error means that a file could not be read.
func check(root string) ([]string, error) {
	targets, problems, err := checkMakefile(filepath.Join(root, "Makefile"))
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && skipped(entry.Name()) {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		found, err := checkMarkdown(path, targets)
		problems = append(problems, found...)
		return err
	})
	return problems, err
}

// skipped says whether a folder holds nothing that people read.
func skipped(name string) bool {
	return strings.HasPrefix(name, ".") || slices.Contains([]string{"bin", "dist", "testdata"}, name)
}

// checkMakefile returns the documented targets, and a problem for each public target without a description.
func checkMakefile(path string) (targets, problems []string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	for _, match := range documented.FindAllStringSubmatch(string(data), -1) {
		targets = append(targets, match[1])
	}
	for _, match := range phony.FindAllStringSubmatch(string(data), -1) {
		for target := range strings.FieldsSeq(match[1]) {
			if !slices.Contains(targets, target) {
				problems = append(problems, fmt.Sprintf("%s: target %s must be described: %s: ## ...", path, target, target))
			}
		}
	}
	return targets, problems, nil
}

func checkMarkdown(path string, targets []string) ([]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	text := string(data)
	code := append(fence.FindAllString(text, -1), inlineCode.FindAllString(fence.ReplaceAllString(text, ""), -1)...)
	prose := inlineCode.ReplaceAllString(fence.ReplaceAllString(text, ""), "")

	var problems []string
	for _, match := range makeCall.FindAllStringSubmatch(strings.Join(code, "\n"), -1) {
		if !slices.Contains(targets, match[1]) {
			problems = append(problems, fmt.Sprintf("%s: the Makefile has no target %s", path, match[1]))
		}
	}
	for _, match := range link.FindAllStringSubmatch(prose, -1) {
		if scheme.MatchString(match[1]) {
			continue
		}
		broken, err := brokenLink(path, match[1])
		if err != nil {
			return nil, err
		}
		if broken != "" {
			problems = append(problems, fmt.Sprintf("%s: link to %s: %s", path, match[1], broken))
		}
	}
	return problems, nil
}

// brokenLink says what is wrong with a relative link in the file at path, or nothing.
func brokenLink(path, target string) (string, error) {
	file, anchor, _ := strings.Cut(target, "#")
	linked := path
	if file != "" {
		linked = filepath.Join(filepath.Dir(path), file)
	}
	if _, err := os.Stat(linked); os.IsNotExist(err) {
		return "no such file", nil
	}
	if anchor == "" || filepath.Ext(linked) != ".md" {
		return "", nil
	}
	data, err := os.ReadFile(linked)
	if err != nil {
		return "", err
	}
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(string(data), ""), -1) {
		if slug(match[1]) == anchor {
			return "", nil
		}
	}
	return "no such heading", nil
}

// slug is the anchor that GitHub gives a heading: lower case, no punctuation, dashes for spaces.
func slug(title string) string {
	return strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}
