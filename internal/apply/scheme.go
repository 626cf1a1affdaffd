package apply

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// scheme knows the kinds that are written.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(resourcev1.AddToScheme(s))
	return s
}()
