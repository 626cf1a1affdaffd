package scenarios_test

import (
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("docs/scenarios", func() {
	It("holds no manifest without a scenario", func() {
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		var manifests []string
		for _, file := range files {
			manifests = append(manifests, filepath.Base(file))
		}
		Expect(proven).To(ConsistOf(manifests))
	})
})
