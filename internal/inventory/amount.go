package inventory

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amount is a quantity in compact form. Equal amounts are equal values, however they were written: 80Gi and
// 85899345920 are one Amount.
type Amount struct {
	whole int64
	// text is the canonical text of a quantity that is not a whole number of 64 bits; whole is then 0.
	text Symbol
}

func newAmount(q resource.Quantity) Amount {
	// Value rounds and saturates; AsInt64 would do, but refuses -1000m.
	whole := q.Value()
	if resource.NewQuantity(whole, resource.BinarySI).Cmp(q) == 0 {
		return Amount{whole: whole}
	}
	return Amount{text: Intern(q.String())}
}

// Quantity is the amount as the API has it, in binary notation.
func (a Amount) Quantity() resource.Quantity {
	if a.text != (Symbol{}) {
		// The text was written by Quantity.String, so it parses.
		if q, err := resource.ParseQuantity(a.text.String()); err == nil {
			return q
		}
	}
	return *resource.NewQuantity(a.whole, resource.BinarySI)
}
