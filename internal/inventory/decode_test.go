package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestAttributesOfEveryForm(t *testing.T) {
	for name, value := range map[string]resourcev1.DeviceAttribute{
		"int":                   {IntValue: new(int64(-3))},
		"zero":                  {IntValue: new(int64(0))},
		"true":                  {BoolValue: new(true)},
		"false":                 {BoolValue: new(false)},
		"string":                {StringValue: new("NVIDIA H100 80GB HBM3")},
		"empty string":          {StringValue: new("")},
		"version":               {VersionValue: new("580.95.5")},
		"ints":                  {IntValues: []int64{1, 1 << 62}},
		"bools":                 {BoolValues: []bool{true, false}},
		"strings":               {StringValues: []string{"a,b", `c"d`, ""}},
		"versions":              {VersionValues: []string{"1.0.0", "2.0.0"}},
		"one of a later server": {},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttribute("x", value)
			if diff := cmp.Diff(value, a.Value()); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
			if a != newAttribute("x", *value.DeepCopy()) {
				t.Error("equal attributes are not one")
			}
			if a == newAttribute("y", value) {
				t.Error("attributes of two names are one")
			}
		})
	}
	if (Attribute{}).Name() != "" || (Capacity{}).Name() != "" || (Symbol{}).String() != "" {
		t.Error("what was never made has a name")
	}
}

func TestAmounts(t *testing.T) {
	for text, same := range map[string]string{
		"80Gi":          "85899345920",
		"85520809984e0": "81559Mi",
		"500m":          "0.5",
		"1500m":         "1.5",
		"-1":            "-1000m",
		"0":             "0",
		"1k":            "1000",
		"100E":          "100000000000000000000",
	} {
		t.Run(text, func(t *testing.T) {
			q := resource.MustParse(text)
			a := newAmount(q)
			if got := a.Quantity(); got.Cmp(q) != 0 {
				t.Errorf("amount is %s", got.String())
			}
			if a != newAmount(resource.MustParse(same)) {
				t.Errorf("%s and %s are not one amount", text, same)
			}
		})
	}
	if q := newAmount(resource.MustParse("85899345920")).Quantity(); q.String() != "80Gi" {
		t.Errorf("80Gi reads %s", q.String())
	}
}

func TestUIDs(t *testing.T) {
	seen := map[UID]string{}
	for _, uid := range []string{
		"", "6f1f5a0e-2a41-4c55-9d0a-0f6e3d1b7c11", "6f1f5a0e-2a41-4c55-9d0a-0f6e3d1b7c12", "p0", "p1",
		"zf1f5a0e-2a41-4c55-9d0a-0f6e3d1b7c11",
	} {
		packed := packUID(types.UID(uid))
		if other, found := seen[packed]; found {
			t.Errorf("%q and %q are one UID", uid, other)
		}
		seen[packed] = uid
	}
}

func TestQualifiedNameWins(t *testing.T) {
	for name, test := range map[string]struct {
		device resourcev1.Device
		lookup string
		want   string
	}{
		"bare, asked bare":                {aDevice("d", attr("uuid", "bare")), "uuid", "bare"},
		"bare, asked qualified":           {aDevice("d", attr("uuid", "bare")), testDriver + "/uuid", "bare"},
		"qualified, asked bare":           {aDevice("d", attr(testDriver+"/uuid", "full")), "uuid", "full"},
		"both, asked bare":                {aDevice("d", attr(testDriver+"/uuid", "full"), attr("uuid", "bare")), "uuid", "full"},
		"both, asked qualified":           {aDevice("d", attr("uuid", "bare"), attr(testDriver+"/uuid", "full")), testDriver + "/uuid", "full"},
		"another domain is another name":  {aDevice("d", attr("other.example.com/uuid", "other")), "uuid", ""},
		"another domain, asked qualified": {aDevice("d", attr("other.example.com/uuid", "other")), "other.example.com/uuid", "other"},
	} {
		t.Run(name, func(t *testing.T) {
			device := newDevice(&test.device)
			if value, _ := device.attribute(testDriver, test.lookup); value.text != test.want {
				t.Errorf("%s is %q, want %q", test.lookup, value.text, test.want)
			}
		})
	}
}

func TestCELDevice(t *testing.T) {
	device := newDevice(&resourcev1.Device{
		Name:                     "gpu-0",
		AllowMultipleAllocations: new(true),
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"index":                        {IntValue: new(int64(0))},
			"uuid":                         {StringValue: new("bare")},
			testDriver + "/uuid":           {StringValue: new("full")},
			"resource.kubernetes.io/bus":   {StringValue: new("41")},
			"other.example.com/with/slash": {BoolValue: new(true)},
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
			"memory":               {Value: resource.MustParse("1Gi")},
			testDriver + "/memory": {Value: resource.MustParse("2Gi"), RequestPolicy: &resourcev1.CapacityRequestPolicy{}},
		},
	})
	want := CELDevice{
		Driver:                   testDriver,
		AllowMultipleAllocations: new(true),
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"index":                        {IntValue: new(int64(0))},
			testDriver + "/uuid":           {StringValue: new("full")},
			"resource.kubernetes.io/bus":   {StringValue: new("41")},
			"other.example.com/with/slash": {BoolValue: new(true)},
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
			testDriver + "/memory": {Value: resource.MustParse("2Gi")},
		},
	}
	if diff := cmp.Diff(want, device.CEL(testDriver)); diff != "" {
		t.Errorf("device (-want +got):\n%s", diff)
	}
}

func TestFromClaimFillsInDefaults(t *testing.T) {
	claim := aClaim("c", requests(
		exactly("one", "x"),
		resourcev1.DeviceRequest{Name: "all", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: "x", AllocationMode: resourcev1.DeviceAllocationModeAll, AdminAccess: new(true),
		}},
		resourcev1.DeviceRequest{Name: "first", FirstAvailable: []resourcev1.DeviceSubRequest{
			{Name: "big", DeviceClassName: "x", Count: 2, AllocationMode: resourcev1.DeviceAllocationModeExactCount},
			{Name: "small", DeviceClassName: "y"},
		}},
	))
	symbol := cmp.Comparer(func(a, b Symbol) bool { return a == b })
	want := []Request{
		{Name: Intern("one"), Class: Intern("x"), Mode: Intern("ExactCount"), Count: 1},
		{Name: Intern("all"), Class: Intern("x"), Mode: Intern("All"), AdminAccess: true},
		{Name: Intern("first"), Alternatives: []Request{
			{Name: Intern("big"), Class: Intern("x"), Mode: Intern("ExactCount"), Count: 2},
			{Name: Intern("small"), Class: Intern("y"), Mode: Intern("ExactCount"), Count: 1},
		}},
	}
	if diff := cmp.Diff(want, claim.Requests, symbol); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestFromClaimReservations(t *testing.T) {
	claim := aClaim("c", func(c *resourcev1.ResourceClaim) {
		c.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
		c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{
			{Resource: "pods", Name: "p", UID: "p"},
			{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "g", UID: "g"},
			{Resource: "pods", Name: "q", UID: "q"},
		}
	})
	if diff := cmp.Diff([]UID{packUID("p"), packUID("q")}, claim.ReservedFor); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if claim.ReservedForOthers != 1 || !claim.ForExtendedResource {
		t.Errorf("claim is %+v", claim)
	}
}

func TestFromPodLeavesOutWhatWaitsForNothing(t *testing.T) {
	for name, test := range map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"a pending pod waits":      {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}, true},
		"a placed pod does not":    {corev1.Pod{Spec: corev1.PodSpec{NodeName: "a"}}, false},
		"a succeeded pod does not": {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}, false},
		"a failed pod does not":    {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, waits := FromPod(&test.pod); waits != test.want {
				t.Errorf("waits is %v, want %v", waits, test.want)
			}
		})
	}
}

func TestFromPodClaims(t *testing.T) {
	pod := aPod("p", namesClaim("named"), hasClaimMade("p-train-x2b4c"), func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{
			Name: "late", ResourceClaimTemplateName: new("infer"),
		})
		p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "p-extended-resources-7"}
	})
	want := []PodClaim{
		{Claim: "named"},
		{Claim: "p-train-x2b4c", Template: Intern("train"), Generated: true},
		{Template: Intern("infer"), Generated: true},
		{Claim: "p-extended-resources-7", Generated: true},
	}
	symbol := cmp.Comparer(func(a, b Symbol) bool { return a == b })
	if diff := cmp.Diff(want, pod.Claims, symbol); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

func TestFromPodExtendedResources(t *testing.T) {
	const gpu = corev1.ResourceName("nvidia.com/gpu")
	container := func(resources corev1.ResourceList) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: resources}}
	}
	quantity := func(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }
	sidecar := container(corev1.ResourceList{gpu: quantity(1)})
	sidecar.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	for name, test := range map[string]struct {
		spec corev1.PodSpec
		want map[string]int64
	}{
		"only names that a class may serve": {
			corev1.PodSpec{Containers: []corev1.Container{container(corev1.ResourceList{
				"cpu": quantity(1), "hugepages-2Mi": quantity(2), "kubernetes.io/batch-cpu": quantity(3), gpu: quantity(4),
				"deviceclass.resource.kubernetes.io/whole.gpu.example.com": quantity(5), "requests.example.com/x": quantity(6),
			})}},
			map[string]int64{"nvidia.com/gpu": 4, "deviceclass.resource.kubernetes.io/whole.gpu.example.com": 5},
		},
		"two resources do not add up to one": {
			corev1.PodSpec{
				InitContainers: []corev1.Container{container(corev1.ResourceList{"example.com/a": quantity(5)})},
				Containers:     []corev1.Container{container(corev1.ResourceList{"example.com/b": quantity(5)})},
			},
			map[string]int64{"example.com/a": 5, "example.com/b": 5},
		},
		"sidecars add to the init containers after them": {
			corev1.PodSpec{InitContainers: []corev1.Container{
				container(corev1.ResourceList{gpu: quantity(1)}), sidecar, container(corev1.ResourceList{gpu: quantity(2)}),
			}},
			map[string]int64{"nvidia.com/gpu": 3},
		},
		"less than nothing is nothing": {
			corev1.PodSpec{Overhead: corev1.ResourceList{gpu: quantity(-1)}}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod, _ := FromPod(&corev1.Pod{Spec: test.spec})
			var got map[string]int64
			for _, r := range pod.ExtendedResources {
				if got == nil {
					got = map[string]int64{}
				}
				got[r.Name.String()] = r.Count
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("extended resources (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFromNode(t *testing.T) {
	node := aNode("a", inRack("1"), cordoned, func(n *corev1.Node) {
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110")}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse,
		})
	})
	if rack, found := node.label("rack"); rack != "1" || !found {
		t.Errorf("label rack is %q, %v", rack, found)
	}
	if _, found := node.label("row"); found {
		t.Error("the node has a label that it does not have")
	}
	if node.AllocatablePods != 110 || !node.Unschedulable || !node.Ready || node.Key().Name != "a" {
		t.Errorf("node is %+v", node)
	}
}

func TestFromSliceOwner(t *testing.T) {
	owned := aSlice("a", func(s *resourcev1.ResourceSlice) {
		s.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "DaemonSet", UID: "d"}, {APIVersion: "v1", Kind: "Node", UID: "node-a"},
		}
	})
	if owned.OwnerNode != aNode("a").UID {
		t.Error("the slice is not its node's")
	}
	if aSlice("a").OwnerNode != (UID{}) {
		t.Error("a slice without owners is a node's")
	}
}

func TestNodeMatcher(t *testing.T) {
	node := aNode("a", func(n *corev1.Node) { n.Labels = map[string]string{"rack": "7", "zone": "north"} })
	requirement := func(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	expressions := func(r ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: r}
	}
	named := func(r corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{r}}
	}
	for name, test := range map[string]struct {
		terms []corev1.NodeSelectorTerm
		want  bool
	}{
		"no terms match nothing":          {nil, false},
		"an empty term matches nothing":   {[]corev1.NodeSelectorTerm{{}}, false},
		"all requirements must hold":      {[]corev1.NodeSelectorTerm{expressions(requirement("rack", "In", "7"), requirement("zone", "In", "south"))}, false},
		"one term is enough":              {[]corev1.NodeSelectorTerm{expressions(requirement("zone", "In", "south")), expressions(requirement("rack", "In", "7"))}, true},
		"a label that must not be there":  {[]corev1.NodeSelectorTerm{expressions(requirement("rack", "DoesNotExist"))}, false},
		"a label that is not there":       {[]corev1.NodeSelectorTerm{expressions(requirement("row", "NotIn", "1"))}, true},
		"a number":                        {[]corev1.NodeSelectorTerm{expressions(requirement("rack", "Gt", "6"))}, true},
		"the node's name":                 {[]corev1.NodeSelectorTerm{named(requirement("metadata.name", "In", "a"))}, true},
		"another node's name":             {[]corev1.NodeSelectorTerm{named(requirement("metadata.name", "NotIn", "a"))}, false},
		"a label twice is not read twice": {[]corev1.NodeSelectorTerm{expressions(requirement("rack", "Gt", "6"), requirement("rack", "Lt", "8"))}, true},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := NewNodeMatcher(test.terms)
			if err != nil {
				t.Fatal(err)
			}
			if got := m.Matches(node); got != test.want {
				t.Errorf("matches is %v, want %v", got, test.want)
			}
		})
	}
	if !(*NodeMatcher)(nil).Matches(node) {
		t.Error("no matcher does not match every node")
	}
	if _, err := NewNodeMatcher([]corev1.NodeSelectorTerm{expressions(requirement("rack", "Near", "7"))}); err == nil {
		t.Error("an operator that does not exist compiles")
	}
}
