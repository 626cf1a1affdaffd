package controllers_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
)

var _ = Describe("Children", func() {
	It("carry the owner's labels and reference, and none of the owner's own labels", func() {
		nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
		pool := newPool(nodes)
		profile := newProfile(pool, 1)
		namespace := newNamespace(map[string]string{"profile": profile})
		class, template := classNamed(pool+".gpupool.dev"), templateIn(namespace, profile)
		Eventually(read(class)).Should(And(
			HaveField("Labels", Equal(map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue, v1alpha1.PoolLabel: pool})),
			HaveField("OwnerReferences", ConsistOf(And(HaveField("Kind", "GpuPool"), HaveField("Name", pool), HaveField("BlockOwnerDeletion", BeNil())))),
			HaveField("ManagedFields", ConsistOf(And(
				HaveField("Manager", v1alpha1.FieldManager), HaveField("Operation", metav1.ManagedFieldsOperationApply)))),
		))
		Eventually(read(template)).Should(And(
			HaveField("Labels", Equal(map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue, v1alpha1.ProfileLabel: profile})),
			HaveField("Spec.Labels", Equal(map[string]string{v1alpha1.ProfileLabel: profile})),
			HaveField("OwnerReferences", ConsistOf(And(HaveField("Kind", "WorkloadProfile"), HaveField("Name", profile)))),
		))
	})

	It("are mended when somebody changes or deletes them, and other people's fields stay", func() {
		nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
		pool := newPool(nodes)
		profile := newProfile(pool, 1)
		namespace := newNamespace(map[string]string{"profile": profile})
		Eventually(readProfile(profile)).Should(And(beReady(), haveNamespaces(1, 1)))
		class, template := classNamed(pool+".gpupool.dev"), templateIn(namespace, profile)

		Expect(read(class)()).NotTo(BeNil())
		wanted := class.DeepCopy()
		patch := client.MergeFrom(class.DeepCopy())
		class.Spec.Selectors = nil
		class.Labels["theirs"] = "stays"
		class.Annotations = map[string]string{"theirs": "stays"}
		Expect(k8s.Patch(suiteContext, class, patch)).To(Succeed())
		Eventually(read(class)).Should(And(
			HaveField("Spec", Equal(wanted.Spec)), HaveField("Labels", HaveKeyWithValue("theirs", "stays")),
			HaveField("Annotations", HaveKeyWithValue("theirs", "stays")), HaveField("UID", wanted.UID)))

		Expect(read(template)()).NotTo(BeNil())
		uid := template.UID
		Expect(k8s.Delete(suiteContext, template)).To(Succeed())
		Eventually(read(template)).Should(HaveField("UID", Not(Equal(uid))))
		Eventually(readProfile(profile)).Should(beReady())
	})

	It("are contended when somebody keeps changing them, without a war", func() {
		nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
		pool := newPool(nodes)
		class := classNamed(pool + ".gpupool.dev")
		Eventually(read(class)).ShouldNot(BeNil())

		stop := make(chan struct{})
		DeferCleanup(func() { close(stop) })
		changes := 0
		go func() {
			defer GinkgoRecover()
			for {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
				present := classNamed(class.Name)
				if k8s.Get(suiteContext, client.ObjectKeyFromObject(present), present) != nil || len(present.Spec.Selectors) == 0 {
					continue
				}
				patch := client.MergeFrom(present.DeepCopy())
				present.Spec.Selectors = nil
				if k8s.Patch(suiteContext, present, patch, client.FieldOwner("somebody-else")) == nil {
					changes++
				}
			}
		}()
		Eventually(readPool(pool)).Should(And(
			haveCondition("ClassPublished=False/Contended"), haveCondition("Reconciling=True/Contended"), haveNoCondition("Stalled")))
		before := len(requests.Writes())
		Consistently(readPool(pool)).Should(haveCondition("ClassPublished=False/Contended"))
		Expect(len(requests.Writes())-before).To(BeNumerically("<=", 2), "corrections wait")
	})

	It("are adopted when the owner is made again under its name", func() {
		nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
		pool := newPool(nodes)
		profile := newProfile(pool, 1)
		namespace := newNamespace(map[string]string{"profile": profile})
		Eventually(readProfile(profile)).Should(And(beReady(), haveNamespaces(1, 1)))
		class, template := classNamed(pool+".gpupool.dev"), templateIn(namespace, profile)
		Expect(read(class)()).NotTo(BeNil())
		Expect(read(template)()).NotTo(BeNil())
		classUID, templateUID := class.UID, template.UID

		orphan := client.PropagationPolicy(metav1.DeletePropagationOrphan)
		remove(&v1alpha1.GpuPool{ObjectMeta: named(pool)}, orphan)
		remove(&v1alpha1.WorkloadProfile{ObjectMeta: named(profile)}, orphan)
		Expect(read(class)()).To(HaveField("OwnerReferences", BeEmpty()))

		apply(poolYAML, pool, nodes)
		apply(profileYAML, profile, pool, 1)
		Eventually(readProfile(profile)).Should(And(beReady(), haveNamespaces(1, 1)))
		Eventually(read(class)).Should(And(HaveField("UID", classUID), HaveField("OwnerReferences", HaveLen(1))))
		Eventually(read(template)).Should(And(HaveField("UID", templateUID), HaveField("OwnerReferences", HaveLen(1))))
	})

	It("of an earlier life with other names go", func() {
		nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
		pool := newPool(nodes)
		Eventually(readPool(pool)).Should(beReady())
		orphan := client.PropagationPolicy(metav1.DeletePropagationOrphan)
		remove(&v1alpha1.GpuPool{ObjectMeta: named(pool)}, orphan)
		apply(poolYAML+"  deviceClass: {name: %[1]s.example.com}\n", pool, nodes)
		Eventually(readPool(pool)).Should(And(beReady(), HaveField("Status.DeviceClassName", pool+".example.com")))
		Eventually(get(classNamed(pool + ".gpupool.dev"))).Should(beNotFound())
	})
})

var _ = Describe("Deletion", func() {
	for _, order := range []string{"pool first", "profile first", "namespace first"} {
		for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
			It("leaves nothing behind and nothing foreign touched: "+order+", "+string(policy), func() {
				nodes, _ := newNodes(1, "gpu.nvidia.com", "nvidia-h100-8")
				pool := newPool(nodes)
				profile := newProfile(pool, 1)
				namespace := newNamespace(map[string]string{"profile": profile})
				Eventually(readProfile(profile)).Should(And(beReady(), haveNamespaces(1, 1)))
				foreignClass := &resourcev1.DeviceClass{ObjectMeta: named(unique("foreign"))}
				foreignClass.Labels = map[string]string{v1alpha1.PoolLabel: pool} // half of our labels is not ours
				Expect(k8s.Create(suiteContext, foreignClass)).To(Succeed())
				DeferCleanup(func() { remove(foreignClass) })
				version := foreignClass.ResourceVersion

				objects := map[string]client.Object{
					"pool":      &v1alpha1.GpuPool{ObjectMeta: named(pool)},
					"profile":   &v1alpha1.WorkloadProfile{ObjectMeta: named(profile)},
					"namespace": namespaceNamed(namespace),
				}
				first := order[:len(order)-len(" first")]
				Expect(k8s.Delete(suiteContext, objects[first], client.PropagationPolicy(policy))).To(Succeed())
				delete(objects, first)
				for _, object := range objects {
					Expect(k8s.Delete(suiteContext, object, client.PropagationPolicy(policy))).To(Succeed())
				}
				class, template := classNamed(pool+".gpupool.dev"), templateIn(namespace, profile)
				for _, object := range []client.Object{
					&v1alpha1.GpuPool{ObjectMeta: named(pool)}, &v1alpha1.WorkloadProfile{ObjectMeta: named(profile)}, class, template,
				} {
					Eventually(get(object)).Should(beNotFound())
				}
				Consistently(get(class)).WithTimeout(time.Second).Should(beNotFound())
				Expect(read(foreignClass)()).To(HaveField("ResourceVersion", version))
			})
		}
	}
})
