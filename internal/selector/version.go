package selector

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is one to three numbers, as people write versions: 8.0, 580, 550.127.08. Device attributes hold semantic
// versions of exactly three numbers; what a Version leaves out depends on whether it is a lower or an upper bound.
type Version []uint64

// ParseVersion reads one to three numbers of at most nine digits, joined by dots. Leading zeros are allowed, since
// vendors write them (550.127.08) and drivers publish the number.
func ParseVersion(text string) (Version, error) {
	parts := strings.Split(text, ".")
	if len(parts) > 3 {
		return nil, fmt.Errorf("%q must be one to three numbers joined by dots, for example 550.127.08", text)
	}
	version := make(Version, 0, len(parts))
	for _, p := range parts {
		n, err := strconv.ParseUint(p, 10, 64)
		if err != nil || len(p) > 9 {
			return nil, fmt.Errorf("%q must be one to three numbers joined by dots, for example 550.127.08", text)
		}
		version = append(version, n)
	}
	return version, nil
}

// lowest is the smallest semantic version that v stands for.
func (v Version) lowest() string {
	var numbers [3]uint64
	copy(numbers[:], v)
	return fmt.Sprintf("%d.%d.%d", numbers[0], numbers[1], numbers[2])
}

// firstAbove is the smallest semantic version above all that v stands for: 580 stands for every 580.x.y. Its
// pre-release "-0" comes before every other pre-release of the same numbers, so that 581.0.0-rc1 is above 580 too.
func (v Version) firstAbove() string {
	var numbers [3]uint64
	copy(numbers[:], v)
	numbers[len(v)-1]++
	return fmt.Sprintf("%d.%d.%d-0", numbers[0], numbers[1], numbers[2])
}

// String is the version as it was written, without leading zeros.
func (v Version) String() string {
	numbers := make([]string, 0, len(v))
	for _, n := range v {
		numbers = append(numbers, strconv.FormatUint(n, 10))
	}
	return strings.Join(numbers, ".")
}
