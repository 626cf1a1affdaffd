package selector

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Name is the full name of an attribute or capacity of a device: its domain and its identifier within it.
type Name struct {
	// Domain is the part before the slash, for names without one the driver's name.
	Domain string
	// ID is a C identifier (resource.k8s.io/v1 QualifiedName).
	ID string
}

// ParseName splits a name as a device publishes it. A bare name belongs to the domain of the driver.
func ParseName(name, driver string) Name {
	if domain, id, found := strings.Cut(name, "/"); found {
		return Name{Domain: domain, ID: id}
	}
	return Name{Domain: driver, ID: name}
}

// String is the name in its qualified form.
func (n Name) String() string { return n.Domain + "/" + n.ID }

// Driver matches the devices of one driver. It must come first: it keeps what follows away from other drivers' devices.
func Driver(name string) string {
	return "device.driver == " + quote(name)
}

// All joins expressions that must all hold. At least one must be given.
func All(expressions ...string) string {
	return strings.Join(expressions, " && ")
}

// AnyOf joins expressions of which one must hold. At least one must be given.
func AnyOf(expressions ...string) string {
	if len(expressions) == 1 {
		return expressions[0]
	}
	return "(" + strings.Join(expressions, " || ") + ")"
}

// Not inverts an expression.
func Not(expression string) string {
	return "!(" + expression + ")"
}

// HasAttribute matches devices that publish an attribute, whatever its type.
func HasAttribute(name Name) string {
	return fmt.Sprintf("%s in device.attributes[%s]", quote(name.ID), quote(name.Domain))
}

// StringMatches matches devices whose attribute is a string that equals a pattern, or, where a pattern ends in "*",
// starts with the text before it. At least one pattern must be given.
func StringMatches(name Name, patterns ...string) string {
	var exact, tests []string
	for _, p := range patterns {
		if prefix, isPrefix := strings.CutSuffix(p, "*"); isPrefix {
			tests = append(tests, "v.startsWith("+quote(prefix)+")")
		} else {
			exact = append(exact, quote(p))
		}
	}
	if len(exact) > 0 {
		tests = slices.Insert(tests, 0, oneOf(exact))
	}
	return bindAttribute(name, "string", AnyOf(tests...))
}

// StringIn matches devices whose attribute is one of the given strings, compared exactly.
func StringIn(name Name, values ...string) string {
	quoted := make([]string, 0, len(values))
	for _, v := range values {
		quoted = append(quoted, quote(v))
	}
	return bindAttribute(name, "string", oneOf(quoted))
}

// JoinedMatches matches devices on which two string attributes, joined by an underscore, equal a pattern, or, where a
// pattern ends in "*", start with the text before it. At least one pattern must be given. CEL could join the strings
// itself, but knows no bound for the cost of that.
func JoinedMatches(first, second Name, patterns ...string) string {
	tests := make([]string, 0, len(patterns))
	for _, p := range patterns {
		head, tail, both := strings.Cut(p, "_")
		switch {
		case both:
			tests = append(tests, All(StringMatches(first, head), StringMatches(second, tail)))
		case strings.HasSuffix(p, "*"):
			tests = append(tests, All(StringMatches(first, p), HasAttribute(second)))
		}
	}
	if len(tests) == 0 { // none of the patterns has two parts
		return "false"
	}
	return AnyOf(tests...)
}

// Shared matches devices of which several claims may take parts (DRAConsumableCapacity). Servers without the feature
// refuse the expression.
func Shared() string {
	return "device.allowMultipleAllocations"
}

// IntIn matches devices whose attribute is one of the given whole numbers.
func IntIn(name Name, values ...int64) string {
	literals := make([]string, 0, len(values))
	for _, v := range values {
		literals = append(literals, strconv.FormatInt(v, 10))
	}
	return bindAttribute(name, "int", oneOf(literals))
}

// IntBetween matches devices whose attribute is a whole number within bounds, both included. A nil bound is none.
func IntBetween(name Name, atLeast, atMost *int64) string {
	var tests []string
	if atLeast != nil {
		tests = append(tests, "v >= "+strconv.FormatInt(*atLeast, 10))
	}
	if atMost != nil {
		tests = append(tests, "v <= "+strconv.FormatInt(*atMost, 10))
	}
	return bindAttribute(name, "int", All(tests...))
}

// BoolIn matches devices whose attribute is one of the given truth values.
func BoolIn(name Name, values ...bool) string {
	literals := make([]string, 0, len(values))
	for _, v := range values {
		literals = append(literals, strconv.FormatBool(v))
	}
	return bindAttribute(name, "bool", oneOf(literals))
}

// VersionIn matches devices whose attribute is one of the given versions, compared number by number.
func VersionIn(name Name, values ...Version) string {
	tests := make([]string, 0, len(values))
	for _, v := range values {
		tests = append(tests, fmt.Sprintf("v.compareTo(semver(%s)) == 0", quote(v.lowest())))
	}
	return bindAttribute(name, semverType, AnyOf(tests...))
}

// VersionBetween matches devices whose attribute is a version within bounds, both included. A nil bound is none.
// Numbers that a version leaves out count as 0 in atLeast and as any number in atMost.
func VersionBetween(name Name, atLeast, atMost *Version) string {
	var tests []string
	if atLeast != nil {
		tests = append(tests, fmt.Sprintf("v.compareTo(semver(%s)) >= 0", quote(atLeast.lowest())))
	}
	if atMost != nil {
		tests = append(tests, fmt.Sprintf("v.isLessThan(semver(%s))", quote(atMost.firstAbove())))
	}
	return bindAttribute(name, semverType, All(tests...))
}

// CapacityBetween matches devices that publish one of the named capacities, and whose first of them lies within bounds,
// both included. A nil bound is none. A device that publishes none of them does not match.
func CapacityBetween(names []Name, atLeast, atMost *resource.Quantity) string {
	sources := make([]string, 0, len(names))
	for _, n := range names {
		sources = append(sources, member("device.capacity", n))
	}
	value := sources[0]
	for _, s := range sources[1:] {
		value += ".or(" + s + ")"
	}
	tests := []string{"v.hasValue()"}
	if atLeast != nil {
		tests = append(tests, fmt.Sprintf("v.value().compareTo(quantity(%s)) >= 0", quote(atLeast.String())))
	}
	if atMost != nil {
		tests = append(tests, fmt.Sprintf("v.value().compareTo(quantity(%s)) <= 0", quote(atMost.String())))
	}
	return fmt.Sprintf("cel.bind(v, %s, %s)", value, All(tests...))
}

// semverType is the type of version attributes as an expression: CEL has no identifier for it.
const semverType = `type(semver("0.0.0"))`

// bindAttribute binds an attribute's value to v for a test that is evaluated only if the value has the CEL type. The
// default of a missing attribute is null, which has a type that nobody asks for.
func bindAttribute(name Name, celType, test string) string {
	return fmt.Sprintf("cel.bind(v, %s.orValue(null), type(v) in [%s] && %s)",
		member("device.attributes", name), celType, test)
}

// member reads a name from one of the maps of a device as an optional value. A name that CEL would not read as one
// after a dot stands in index form, where it is a string.
func member(outer string, name Name) string {
	if reserved[name.ID] || !identifier.MatchString(name.ID) {
		return fmt.Sprintf("%s[%s][?%s]", outer, quote(name.Domain), quote(name.ID))
	}
	return fmt.Sprintf("%s[%s].?%s", outer, quote(name.Domain), name.ID)
}

// identifier is what DRA allows as an ID (resource.k8s.io/v1 QualifiedName), and CEL after a dot.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reserved are the identifiers that the CEL language definition reserves, and its literals.
var reserved = map[string]bool{
	"as": true, "break": true, "const": true, "continue": true, "else": true, "false": true, "for": true,
	"function": true, "if": true, "import": true, "in": true, "let": true, "loop": true, "namespace": true,
	"null": true, "package": true, "return": true, "true": true, "var": true, "void": true, "while": true,
}

func oneOf(literals []string) string {
	if len(literals) == 1 {
		return "v == " + literals[0]
	}
	return "v in [" + strings.Join(literals, ", ") + "]"
}

// quote writes a string as a CEL literal. Go and CEL agree on the escapes that strconv writes for valid UTF-8 except
// \x, which Go writes for control characters below 0x80 only and CEL reads as the same code point.
func quote(s string) string {
	return strconv.Quote(strings.ToValidUTF8(s, "\uFFFD"))
}
