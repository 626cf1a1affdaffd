package scenarios_test

import (
	"errors"
	"fmt"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gcustom"
	gomegatypes "github.com/onsi/gomega/types"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
)

// pool and profile are the present state, for Eventually.
func pool(name string) func() (*v1alpha1.GpuPool, error) {
	return read(&v1alpha1.GpuPool{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func profile(name string) func() (*v1alpha1.WorkloadProfile, error) {
	return read(&v1alpha1.WorkloadProfile{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func read[T client.Object](object T) func() (T, error) {
	return func() (T, error) {
		return object, k8s.Get(suiteContext, client.ObjectKeyFromObject(object), object)
	}
}

// beNotFound matches the error of an object that does not exist.
func beNotFound() gomegatypes.GomegaMatcher {
	return WithTransform(apierrors.IsNotFound, BeTrue())
}

// haveCondition matches an object whose status was judged for its present generation and has a condition, written as
// type=status/reason.
func haveCondition(want string) gomegatypes.GomegaMatcher {
	return gcustom.MakeMatcher(func(object client.Object) (bool, error) {
		var conditions []metav1.Condition
		var observed int64
		switch o := object.(type) {
		case *v1alpha1.GpuPool:
			conditions, observed = o.Status.Conditions, o.Status.ObservedGeneration
		case *v1alpha1.WorkloadProfile:
			conditions, observed = o.Status.Conditions, o.Status.ObservedGeneration
		default:
			return false, errors.New("not an object with conditions")
		}
		for _, c := range conditions {
			if fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason) == want {
				return observed == object.GetGeneration(), nil
			}
		}
		return false, nil
	}).WithTemplate("Expected the status of\n{{.FormattedActual}}\n{{.To}} have condition {{.Data}}", want)
}

// beReady matches an object that is Ready for its present generation.
func beReady() gomegatypes.GomegaMatcher { return haveCondition("Ready=True/Ready") }

// bePublished matches a profile that is Ready and has its template in n namespaces.
func bePublished(n int32) gomegatypes.GomegaMatcher {
	return And(beReady(), HaveField("Status.Namespaces", HaveValue(And(
		HaveField("Selected", HaveValue(Equal(n))), HaveField("Published", HaveValue(Equal(n)))))))
}

// devices are the device counts of a pool.
type devices struct{ total, allocated, available, unavailable int32 }

// haveDevices matches a Ready pool with these counts.
func haveDevices(want devices) gomegatypes.GomegaMatcher {
	return And(beReady(), WithTransform(func(pool *v1alpha1.GpuPool) *devices {
		d := pool.Status.Devices
		if d == nil {
			return nil
		}
		return &devices{*d.Total, *d.Allocated, *d.Available, *d.Unavailable}
	}, HaveValue(Equal(want))))
}

// haveNoSum matches a pool whose devices exclude each other, so that counts of them would mean nothing.
func haveNoSum() gomegatypes.GomegaMatcher {
	return And(beReady(), haveCondition("DevicesFound=True/Found"), HaveField("Status.Devices", BeNil()))
}

// haveClaims matches a pool or profile with these claim counts.
func haveClaims(allocated, pending int32) gomegatypes.GomegaMatcher {
	return HaveField("Status.Claims", HaveValue(And(
		HaveField("Allocated", HaveValue(Equal(allocated))), HaveField("Pending", HaveValue(Equal(pending))))))
}

// haveOutOfScope matches a pool whose class matches n devices on nodes that the pool does not select.
func haveOutOfScope(n int32) gomegatypes.GomegaMatcher {
	return HaveField("Status.OutOfScope", HaveValue(Equal(n)))
}

// haveExcluded matches a pool of which a field keeps devices out.
func haveExcluded(field string, devices int32, detail gomegatypes.GomegaMatcher) gomegatypes.GomegaMatcher {
	return HaveField("Status.Excluded", ContainElement(And(
		HaveField("Field", field), HaveField("Devices", devices), HaveField("Detail", detail))))
}
