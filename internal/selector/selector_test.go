package selector_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"

	"github.com/gpupool/gpupool-operator/internal/selector"
)

const driver = "gpu.example.com"

var (
	x       = selector.ParseName("x", driver)
	foreign = selector.ParseName("other.example.com/x", driver)
	keyword = selector.ParseName("in", driver)
	memory  = selector.ParseName("memory", driver)
	other   = selector.ParseName("addressableMemory", driver)
)

// attributeDevices are one device for each type an attribute can have, and one without attributes.
func attributeDevices(name string) map[string]dracel.Device {
	device := func(value resourcev1.DeviceAttribute) dracel.Device {
		return dracel.Device{
			Driver:     driver,
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{resourcev1.QualifiedName(name): value},
		}
	}
	return map[string]dracel.Device{
		"none":        {Driver: driver},
		"string a":    device(resourcev1.DeviceAttribute{StringValue: ptr.To("a")}),
		"string abc":  device(resourcev1.DeviceAttribute{StringValue: ptr.To("abc")}),
		"string 3":    device(resourcev1.DeviceAttribute{StringValue: ptr.To("3")}),
		"int 3":       device(resourcev1.DeviceAttribute{IntValue: ptr.To(int64(3))}),
		"int -1":      device(resourcev1.DeviceAttribute{IntValue: ptr.To(int64(-1))}),
		"bool true":   device(resourcev1.DeviceAttribute{BoolValue: ptr.To(true)}),
		"bool false":  device(resourcev1.DeviceAttribute{BoolValue: ptr.To(false)}),
		"1.2.3":       device(resourcev1.DeviceAttribute{VersionValue: ptr.To("1.2.3")}),
		"1.2.9+build": device(resourcev1.DeviceAttribute{VersionValue: ptr.To("1.2.9+build")}),
		"1.3.0-rc1":   device(resourcev1.DeviceAttribute{VersionValue: ptr.To("1.3.0-rc1")}),
		"1.10.0":      device(resourcev1.DeviceAttribute{VersionValue: ptr.To("1.10.0")}),
		"2.0.0-rc1":   device(resourcev1.DeviceAttribute{VersionValue: ptr.To("2.0.0-rc1")}),
		"ints":        device(resourcev1.DeviceAttribute{IntValues: []int64{3}}),
		"strings":     device(resourcev1.DeviceAttribute{StringValues: []string{"a"}}),
		"bools":       device(resourcev1.DeviceAttribute{BoolValues: []bool{true}}),
		"versions":    device(resourcev1.DeviceAttribute{VersionValues: []string{"1.2.3"}}),
	}
}

func TestAttributes(t *testing.T) {
	version := func(s string) selector.Version {
		v, err := selector.ParseVersion(s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	allVersions := []string{"1.10.0", "1.2.3", "1.2.9+build", "1.3.0-rc1", "2.0.0-rc1"}
	tests := map[string]struct {
		name       string
		expression string
		want       []string
	}{
		"a string equals one value":     {expression: selector.StringIn(x, "abc"), want: []string{"string abc"}},
		"a string equals any value":     {expression: selector.StringIn(x, "abc", "3"), want: []string{"string 3", "string abc"}},
		"a star in a value is literal":  {expression: selector.StringIn(x, "a*")},
		"a pattern without star":        {expression: selector.StringMatches(x, "a"), want: []string{"string a"}},
		"a pattern with star":           {expression: selector.StringMatches(x, "a*"), want: []string{"string a", "string abc"}},
		"patterns of both kinds":        {expression: selector.StringMatches(x, "ab*", "a", "3"), want: []string{"string 3", "string a", "string abc"}},
		"an int":                        {expression: selector.IntIn(x, 3), want: []string{"int 3"}},
		"one of several ints":           {expression: selector.IntIn(x, 3, -1), want: []string{"int -1", "int 3"}},
		"an int at least":               {expression: selector.IntBetween(x, ptr.To(int64(0)), nil), want: []string{"int 3"}},
		"an int at most":                {expression: selector.IntBetween(x, nil, ptr.To(int64(0))), want: []string{"int -1"}},
		"a bool":                        {expression: selector.BoolIn(x, false), want: []string{"bool false"}},
		"either bool":                   {expression: selector.BoolIn(x, true, false), want: []string{"bool false", "bool true"}},
		"a version":                     {expression: selector.VersionIn(x, version("1.2.3"), version("9")), want: []string{"1.2.3"}},
		"a version at least 0":          {expression: selector.VersionBetween(x, ptr.To(version("0")), nil), want: allVersions},
		"versions compare by number":    {expression: selector.VersionBetween(x, ptr.To(version("1.9")), nil), want: []string{"1.10.0", "2.0.0-rc1"}},
		"min leaves out zeros":          {expression: selector.VersionBetween(x, ptr.To(version("1.2")), ptr.To(version("1.2"))), want: []string{"1.2.3", "1.2.9+build"}},
		"max leaves out any":            {expression: selector.VersionBetween(x, nil, ptr.To(version("1"))), want: []string{"1.10.0", "1.2.3", "1.2.9+build", "1.3.0-rc1"}},
		"max of three numbers is exact": {expression: selector.VersionBetween(x, nil, ptr.To(version("1.2.3"))), want: []string{"1.2.3"}},
		"an attribute that exists": {
			expression: selector.HasAttribute(x), want: append([]string{
				"bool false", "bool true", "bools", "int -1", "int 3", "ints", "string 3", "string a", "string abc", "strings", "versions",
			}, allVersions...),
		},
		"an attribute that does not exist":         {expression: selector.Not(selector.HasAttribute(x)), want: []string{"none"}},
		"an attribute of another domain":           {name: "other.example.com/x", expression: selector.StringIn(foreign, "a"), want: []string{"string a"}},
		"a name in a domain that nobody publishes": {expression: selector.StringIn(foreign, "a")},
		"a name that CEL reserves":                 {name: "in", expression: selector.StringIn(keyword, "a"), want: []string{"string a"}},
		"a name that is none":                      {name: "no-name", expression: selector.StringIn(selector.ParseName("no-name", driver), "a"), want: []string{"string a"}},
		"a name that would be an expression":       {name: "y", expression: selector.StringIn(selector.ParseName(`y.orValue("a") == "a" || v`, driver), "a")},
		"a qualified name is the bare one":         {name: driver + "/x", expression: selector.StringIn(x, "a"), want: []string{"string a"}},
		"negation matches missing and other types": {
			expression: selector.Not(selector.StringIn(x, "a", "abc", "3")),
			want: append([]string{
				"bool false", "bool true", "bools", "int -1", "int 3", "ints", "none", "strings", "versions",
			}, allVersions...),
		},
		"all": {expression: selector.All(selector.Driver(driver), selector.StringMatches(x, "a*"), selector.Not(selector.StringIn(x, "a"))), want: []string{"string abc"}},
		"any": {expression: selector.AnyOf(selector.IntIn(x, 3), selector.StringIn(x, "3")), want: []string{"int 3", "string 3"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			attribute := tc.name
			if attribute == "" {
				attribute = "x"
			}
			checkMatches(t, tc.expression, attributeDevices(attribute), tc.want)
		})
	}
}

func TestCapacity(t *testing.T) {
	device := func(capacities map[resourcev1.QualifiedName]string) dracel.Device {
		d := dracel.Device{Driver: driver, Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{}}
		for name, value := range capacities {
			d.Capacity[name] = resourcev1.DeviceCapacity{Value: resource.MustParse(value)}
		}
		return d
	}
	devices := map[string]dracel.Device{
		"none":              {Driver: driver},
		"0":                 device(map[resourcev1.QualifiedName]string{"memory": "0"}),
		"81559Mi":           device(map[resourcev1.QualifiedName]string{"memory": "81559Mi"}),
		"80Gi in bytes":     device(map[resourcev1.QualifiedName]string{"memory": "85899345920"}),
		"qualified 141Gi":   device(map[resourcev1.QualifiedName]string{driver + "/memory": "141Gi"}),
		"addressable 80Gi":  device(map[resourcev1.QualifiedName]string{"addressableMemory": "80Gi"}),
		"both, memory wins": device(map[resourcev1.QualifiedName]string{"memory": "1Gi", "addressableMemory": "80Gi"}),
	}
	q := func(s string) *resource.Quantity { return ptr.To(resource.MustParse(s)) }
	tests := map[string]struct {
		names    []selector.Name
		min, max *resource.Quantity
		want     []string
	}{
		"80Gi is more than an 80 GB card has": {names: []selector.Name{memory}, min: q("80Gi"), want: []string{"80Gi in bytes", "qualified 141Gi"}},
		"80G is not":                          {names: []selector.Name{memory}, min: q("80G"), want: []string{"80Gi in bytes", "81559Mi", "qualified 141Gi"}},
		"both ends are included":              {names: []selector.Name{memory}, min: q("80Gi"), max: q("80Gi"), want: []string{"80Gi in bytes"}},
		"max alone needs a value":             {names: []selector.Name{memory}, max: q("2Gi"), want: []string{"0", "both, memory wins"}},
		"no bound needs a value":              {names: []selector.Name{memory}, want: []string{"0", "80Gi in bytes", "81559Mi", "both, memory wins", "qualified 141Gi"}},
		"the first name that is published":    {names: []selector.Name{memory, other}, min: q("80Gi"), want: []string{"80Gi in bytes", "addressable 80Gi", "qualified 141Gi"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			checkMatches(t, selector.CapacityBetween(tc.names, tc.min, tc.max), devices, tc.want)
		})
	}
}

func TestJoinedAndShared(t *testing.T) {
	device := func(first, second string, shared *bool) dracel.Device {
		d := dracel.Device{Driver: driver, AllowMultipleAllocations: shared, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}}
		if first != "" {
			d.Attributes["x"] = resourcev1.DeviceAttribute{StringValue: &first}
		}
		if second != "" {
			d.Attributes["y"] = resourcev1.DeviceAttribute{StringValue: &second}
		}
		return d
	}
	devices := map[string]dracel.Device{
		"none": device("", "", nil), "cpx": device("cpx", "", ptr.To(false)),
		"cpx_nps4": device("cpx", "nps4", ptr.To(true)), "spx_nps1": device("spx", "nps1", nil),
	}
	y := selector.ParseName("y", driver)
	checkMatches(t, selector.JoinedMatches(x, y, "cpx_nps4"), devices, []string{"cpx_nps4"})
	checkMatches(t, selector.JoinedMatches(x, y, "cpx_*", "spx*"), devices, []string{"cpx_nps4", "spx_nps1"})
	checkMatches(t, selector.JoinedMatches(x, y, "cpx_nps1", "spx"), devices, nil)
	checkMatches(t, selector.JoinedMatches(x, y, "spx"), devices, nil)
	checkMatches(t, selector.Shared(), devices, []string{"cpx_nps4"})
	checkMatches(t, selector.Not(selector.Shared()), devices, []string{"none", "cpx", "spx_nps1"})
}

func TestUserTextIsData(t *testing.T) {
	for _, text := range []string{
		`"`, `\`, `\"`, `a") || true || ("`, "`", "'", "\n\t\r\x00\x7f", "\u2028", "Å 日本語 ®", "\U0001F600", "\xff\xfe", `\u0041`, `${x}`,
	} {
		want := strings.ToValidUTF8(text, "\uFFFD")
		devices := map[string]dracel.Device{
			"equal": {Driver: driver, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"x": {StringValue: &want}}},
			"other": {Driver: driver, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"x": {StringValue: ptr.To("y")}}},
			"none":  {Driver: driver},
		}
		checkMatches(t, selector.StringIn(x, text), devices, []string{"equal"})
		checkMatches(t, selector.StringMatches(x, text+"*"), devices, []string{"equal"})
	}
}

func FuzzStringMatches(f *testing.F) {
	f.Add("NVIDIA H100*", "NVIDIA H100 80GB HBM3")
	f.Add(`") || true || ("`, "x")
	f.Add("*", "")
	f.Fuzz(func(t *testing.T, pattern, published string) {
		if strings.Count(pattern, "*") > 1 || len(pattern) > 64 || len(published) > 64 {
			t.Skip("the schema refuses it")
		}
		compiled, err := selector.NewCompiler(1).Compile(selector.All(selector.Driver(driver), selector.StringMatches(x, pattern)))
		if err != nil {
			t.Fatalf("pattern %q does not compile: %v", pattern, err)
		}
		valid := strings.ToValidUTF8(pattern, "\uFFFD")
		prefix, isPrefix := strings.CutSuffix(valid, "*")
		want := published == valid || isPrefix && strings.HasPrefix(published, prefix)
		for _, d := range []struct {
			device dracel.Device
			want   bool
		}{
			{dracel.Device{Driver: driver, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"x": {StringValue: &published}}}, want},
			{dracel.Device{Driver: driver}, false},
		} {
			got, err := compiled.Matches(d.device)
			if err != nil || got != d.want {
				t.Fatalf("pattern %q on %q: got %v, %v, want %v", pattern, published, got, err, d.want)
			}
		}
	})
}

func TestParseVersion(t *testing.T) {
	tests := map[string]struct {
		want    selector.Version
		wantErr bool
	}{
		"580":              {want: selector.Version{580}},
		"8.0":              {want: selector.Version{8, 0}},
		"550.127.08":       {want: selector.Version{550, 127, 8}},
		"":                 {wantErr: true},
		"1.":               {wantErr: true},
		"v1":               {wantErr: true},
		"-1":               {wantErr: true},
		"6.19.14.31400000": {wantErr: true},
		"1.2345678901":     {wantErr: true},
	}
	for text, tc := range tests {
		t.Run(text, func(t *testing.T) {
			got, err := selector.ParseVersion(text)
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.wantErr {
				t.Errorf("error %v, diff (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	tests := map[string]struct{ expression, want string }{
		"what does not parse":        {`device.driver ==`, "Syntax error"},
		"what is not a bool":         {`device.driver`, "must evaluate to bool"},
		"what costs too much":        {`device.attributes["d"].?x.orValue("").contains("a")`, "no bound on its cost"},
		"what is merely expensive":   {"[" + strings.TrimSuffix(strings.Repeat("1,", 300), ",") + "].all(a, [" + strings.TrimSuffix(strings.Repeat("1,", 300), ",") + "].all(b, device.driver.matches('^(a|b)*c$')))", "make it simpler"},
		"what is too long":           {`device.driver == "` + strings.Repeat("x", 11000) + `"`, "Kubernetes allows 10240"},
		"a variable that is unknown": {`pod.name == "x"`, "undeclared reference to 'pod'"},
	}
	compiler := selector.NewCompiler(8)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second answer comes from memory
				compiled, err := compiler.Compile(tc.expression)
				if compiled != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("got %v, error %v; want an error that says %q", compiled, err, tc.want)
				}
			}
		})
	}
}

func TestMatchesReportsRuntimeErrors(t *testing.T) {
	compiled, err := selector.NewCompiler(1).Compile(`device.attributes["gpu.example.com"].x == "a"`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compiled.Matches(dracel.Device{Driver: driver}); err == nil || !strings.Contains(err.Error(), "no such key") {
		t.Errorf("got %v, want an error about the missing key", err)
	}
}

func BenchmarkCompile(b *testing.B) {
	expression := selector.All(selector.Driver(driver), selector.StringMatches(x, "NVIDIA H100*", "NVIDIA A100 80GB"))
	for b.Loop() {
		if _, err := selector.NewCompiler(1).Compile(expression); err != nil {
			b.Fatal(err)
		}
	}
}

// checkMatches compiles an expression and compares which of the devices it matches. No device may make it fail.
func checkMatches(t *testing.T, expression string, devices map[string]dracel.Device, want []string) {
	t.Helper()
	compiled, err := selector.NewCompiler(1).Compile(expression)
	if err != nil {
		t.Fatalf("%s does not compile: %v", expression, err)
	}
	got := map[string]bool{}
	for name, device := range devices {
		matches, err := compiled.Matches(device)
		if err != nil {
			t.Errorf("%s fails on device %q: %v", expression, name, err)
		}
		if matches {
			got[name] = true
		}
	}
	wantSet := map[string]bool{}
	for _, name := range want {
		wantSet[name] = true
	}
	if diff := cmp.Diff(wantSet, got); diff != "" {
		t.Errorf("%s matches (-want +got):\n%s", expression, diff)
	}
}
