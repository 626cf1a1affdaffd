package source

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestTroubleIsToldOnceForAsLongAsItStaysTheSame(t *testing.T) {
	var logged []string
	trouble := &trouble{log: funcr.NewJSON(func(entry string) { logged = append(logged, entry) }, funcr.Options{})}
	forbidden := func(detail string) error {
		err := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New(detail))
		return fmt.Errorf("failed to list nodes: %w", err)
	}
	for _, step := range []struct {
		does string
		do   func()
		logs bool
	}{
		{"no trouble is over", trouble.over, false},
		{"a new error", func() { trouble.tell(forbidden("at 12:00")) }, true},
		{"an answer for the same reason", func() { trouble.tell(forbidden("at 12:01")) }, false},
		{"another error", func() { trouble.tell(errors.New("connection refused")) }, true},
		{"the same error", func() { trouble.tell(errors.New("connection refused")) }, false},
		{"a third error", func() { trouble.tell(errors.New("no such host")) }, true},
		{"the end", trouble.over, true},
		{"the end again", trouble.over, false},
		{"the error that there was", func() { trouble.tell(errors.New("no such host")) }, true},
	} {
		before := len(logged)
		step.do()
		if diff := cmp.Diff(step.logs, len(logged) > before); diff != "" {
			t.Errorf("%s is logged (-want +got):\n%s", step.does, diff)
		}
	}
}
