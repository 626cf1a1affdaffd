package source

import (
	"github.com/go-logr/logr"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// trouble tells what keeps the server from being watched, once for as long as it stays the same. It is for one
// goroutine.
type trouble struct {
	log logr.Logger
	// told is what was told last; empty when there is no trouble.
	told string
}

// tell logs an error unless it is what was told last.
func (t *trouble) tell(err error) {
	// The text of an answer of the server may differ each time, its reason does not.
	what := string(apierrors.ReasonForError(err))
	if what == string(metav1.StatusReasonUnknown) {
		what = err.Error()
	}
	if what == t.told {
		return
	}
	t.told = what
	t.log.Error(err, "Failing to watch; trying on")
}

// over logs that there is no trouble any more.
func (t *trouble) over() {
	if t.told != "" {
		t.told = ""
		t.log.Info("Watching again")
	}
}
