package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	const makefile = ".PHONY: test\ntest: ## Run the tests.\n\tgo test ./...\n"
	cases := map[string]struct {
		makefile string
		page     string
		want     []string
	}{
		"links and targets that exist":     {page: "[a](other.md#two-words-and-a-dash) [b](#here) `make test`\n# Here"},
		"a link to another site":           {page: "[a](https://example.com/x)"},
		"a sentence that begins with make": {page: "make sure that it works"},
		"an example in a code block":       {page: "```\n[a](missing.md)\n```"},
		"a file that does not exist": {
			page: "[a](missing.md)",
			want: []string{"page.md: link to missing.md: no such file"},
		},
		"a heading that does not exist": {
			page: "[a](other.md#three)",
			want: []string{"page.md: link to other.md#three: no such heading"},
		},
		"a heading that is only code": {
			page: "[a](#code)\n```\n# Code\n```",
			want: []string{"page.md: link to #code: no such heading"},
		},
		"a target that does not exist, inline": {
			page: "run `make tset`",
			want: []string{"page.md: the Makefile has no target tset"},
		},
		"a target that does not exist, in a code block": {
			page: "```sh\n$ make tset\n```",
			want: []string{"page.md: the Makefile has no target tset"},
		},
		"a target without description": {
			makefile: ".PHONY: lint\nlint:\n\ttrue\n",
			want:     []string{"Makefile: target lint must be described: lint: ## ..."},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write(t, "Makefile", makefile+c.makefile)
			write(t, "other.md", "# Other\n\n## Two words and a dash\n")
			write(t, "page.md", c.page)
			write(t, "testdata/ignored.md", "[a](missing.md)")

			got, err := check(".")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckNeedsMakefile(t *testing.T) {
	if _, err := check(t.TempDir()); err == nil {
		t.Error("want an error without a Makefile")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
