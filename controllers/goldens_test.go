package controllers_test

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/test/install"
)

var _ = Describe("The golden plans", func() {
	It("are accepted by the API server", func() {
		// Where the templates go; the server allows admin access in namespaces with the label only.
		namespace := newNamespace(map[string]string{"resource.kubernetes.io/admin-access": "true"})
		files, err := filepath.Glob(filepath.Join(install.Root(), "internal/plan/testdata/*/*.golden.yaml"))
		Expect(err).NotTo(HaveOccurred())
		accepted := 0
		for _, file := range files {
			content, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			if strings.HasPrefix(string(content), "refused:") || strings.Contains(string(content), "\nrefused:") {
				continue
			}
			objects, err := install.Objects(content)
			Expect(err).NotTo(HaveOccurred())
			for _, object := range objects {
				if object.GetKind() == "ResourceClaimTemplate" {
					object.SetNamespace(namespace)
				}
				Expect(k8s.Apply(suiteContext, client.ApplyConfigurationFromUnstructured(object),
					client.DryRunAll, client.ForceOwnership, client.FieldOwner("goldens"))).To(Succeed(), file)
				accepted++
			}
		}
		Expect(accepted).To(BeNumerically(">", 10))
	})
})
