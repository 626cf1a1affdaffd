package inventory

import (
	"encoding/hex"
	"hash/fnv"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/types"
)

// Symbol is an interned string: equal symbols are one pointer. What a fleet repeats is stored once and compared for the
// price of a pointer. The zero Symbol is the empty string.
type Symbol struct {
	handle unique.Handle[string]
}

// Intern makes the Symbol of a string.
func Intern(s string) Symbol {
	if s == "" {
		return Symbol{}
	}
	return Symbol{handle: unique.Make(s)}
}

// String is the string that was interned.
func (s Symbol) String() string {
	if s == (Symbol{}) {
		return ""
	}
	return s.handle.Value()
}

// UID is an object's UID in a third of its size. The zero UID is that of no object.
type UID [16]byte

// packUID packs a UID. The API server makes UUIDs; anything else, which a client can write into a reference, is hashed:
// a UID only ever has to equal itself.
func packUID(uid types.UID) UID {
	var packed UID
	if uid == "" {
		return packed
	}
	digits := strings.ReplaceAll(string(uid), "-", "")
	if len(digits) == hex.EncodedLen(len(packed)) {
		if _, err := hex.Decode(packed[:], []byte(digits)); err == nil {
			return packed
		}
	}
	hash := fnv.New128a()
	_, _ = hash.Write([]byte(uid)) // a hash.Hash never returns an error
	hash.Sum(packed[:0])
	return packed
}
