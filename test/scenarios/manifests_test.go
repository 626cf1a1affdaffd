package scenarios_test

import (
	"os"
	"path/filepath"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("docs/scenarios", func() {
	It("holds no manifest without a scenario", func() {
		Expect(proven).To(ConsistOf(manifests()))
	})

	It("has every manifest in its table", func() {
		table, err := os.ReadFile(filepath.Join(folder, "README.md"))
		Expect(err).NotTo(HaveOccurred())
		var linked []string
		for _, link := range regexp.MustCompile(`]\(([^)/]+\.yaml)\)`).FindAllStringSubmatch(string(table), -1) {
			linked = append(linked, link[1])
		}
		Expect(linked).To(ConsistOf(manifests()))
	})
})

// manifests are the names of all files with scenarios.
func manifests() []string {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, file := range files {
		names = append(names, filepath.Base(file))
	}
	return names
}
