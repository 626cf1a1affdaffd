package controllers_test

import (
	"errors"
	"fmt"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gcustom"
	gomegatypes "github.com/onsi/gomega/types"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
)

// beNotFound matches the error of an object that does not exist.
func beNotFound() gomegatypes.GomegaMatcher {
	return WithTransform(apierrors.IsNotFound, BeTrue())
}

// get is the error of reading an object, for Eventually.
func get(object client.Object) func() error {
	return func() error { return k8s.Get(suiteContext, client.ObjectKeyFromObject(object), object) }
}

// read is the object as it is, for Eventually.
func read[T client.Object](object T) func() (T, error) {
	return func() (T, error) {
		return object, k8s.Get(suiteContext, client.ObjectKeyFromObject(object), object)
	}
}

// readPool and readProfile are the present state, for Eventually.
func readPool(name string) func() (*v1alpha1.GpuPool, error) {
	return read(&v1alpha1.GpuPool{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func readProfile(name string) func() (*v1alpha1.WorkloadProfile, error) {
	return read(&v1alpha1.WorkloadProfile{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// haveCondition matches an object whose status was judged for its present generation and has a condition, written as
// type=status/reason.
func haveCondition(want string) gomegatypes.GomegaMatcher {
	return gcustom.MakeMatcher(func(object client.Object) (bool, error) {
		conditions, observed, err := statusOf(object)
		if err != nil || observed != object.GetGeneration() {
			return false, err
		}
		for _, c := range conditions {
			if fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason) == want {
				return true, nil
			}
		}
		return false, nil
	}).WithTemplate("Expected the status of\n{{.FormattedActual}}\n{{.To}} have condition {{.Data}}", want)
}

// haveNoCondition matches an object without a condition of a type.
func haveNoCondition(conditionType string) gomegatypes.GomegaMatcher {
	return gcustom.MakeMatcher(func(object client.Object) (bool, error) {
		conditions, _, err := statusOf(object)
		return meta.FindStatusCondition(conditions, conditionType) == nil, err
	}).WithTemplate("Expected the status of\n{{.FormattedActual}}\n{{.To}} have no condition {{.Data}}", conditionType)
}

func statusOf(object client.Object) ([]metav1.Condition, int64, error) {
	switch o := object.(type) {
	case *v1alpha1.GpuPool:
		return o.Status.Conditions, o.Status.ObservedGeneration, nil
	case *v1alpha1.WorkloadProfile:
		return o.Status.Conditions, o.Status.ObservedGeneration, nil
	}
	return nil, 0, errors.New("not an object with conditions")
}

// beReady matches an object that is Ready for its present generation.
func beReady() gomegatypes.GomegaMatcher {
	return haveCondition("Ready=True/Ready")
}

// haveDevices matches a pool's device counts.
func haveDevices(total, allocated, available, unavailable int32) gomegatypes.GomegaMatcher {
	return WithTransform(func(pool *v1alpha1.GpuPool) string {
		d := pool.Status.Devices
		if d == nil {
			return "unset"
		}
		return fmt.Sprintf("%d total, %d allocated, %d available, %d unavailable", *d.Total, *d.Allocated, *d.Available, *d.Unavailable)
	}, Equal(fmt.Sprintf("%d total, %d allocated, %d available, %d unavailable", total, allocated, available, unavailable)))
}

// haveNamespaces matches a profile's namespace counts.
func haveNamespaces(selected, published int32) gomegatypes.GomegaMatcher {
	return WithTransform(func(profile *v1alpha1.WorkloadProfile) string {
		n := profile.Status.Namespaces
		if n == nil {
			return "unset"
		}
		return fmt.Sprintf("%d selected, %d published", *n.Selected, *n.Published)
	}, Equal(fmt.Sprintf("%d selected, %d published", selected, published)))
}

// haveClaims matches a pool's claim counts.
func haveClaims(allocated, pending int32) gomegatypes.GomegaMatcher {
	return WithTransform(func(pool *v1alpha1.GpuPool) string {
		c := pool.Status.Claims
		if c == nil {
			return "unset"
		}
		return fmt.Sprintf("%d allocated, %d pending", *c.Allocated, *c.Pending)
	}, Equal(fmt.Sprintf("%d allocated, %d pending", allocated, pending)))
}

// haveMessage matches an object whose condition of a type has a message that matches.
func haveMessage(conditionType string, message gomegatypes.GomegaMatcher) gomegatypes.GomegaMatcher {
	return WithTransform(func(object client.Object) string {
		conditions, _, _ := statusOf(object)
		if c := meta.FindStatusCondition(conditions, conditionType); c != nil {
			return c.Message
		}
		return ""
	}, message)
}
