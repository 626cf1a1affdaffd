package plan

import "fmt"

// Finding is why a spec cannot be served: a documented reason of the Accepted condition, and a sentence for the user
// that names the field and says what to write instead.
type Finding struct {
	Reason  string
	Message string
}

func finding(reason, format string, args ...any) *Finding {
	return &Finding{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
