package fakedriver

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	resourcev1 "k8s.io/api/resource/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

//go:embed shapes/*.yaml
var builtin embed.FS

// Shape is what a driver publishes for one kind of node, or for devices that several nodes reach.
//
// It is a YAML stream of ResourceSlices, one document a slice, without the fields that follow from where it is
// published: metadata, the pool's generation and resourceSliceCount. These placeholders are replaced in the text:
//
//	${node}       the node's name
//	${uuid:KEY}   a UUID that depends on the node's name and KEY only
//	${pci:N}      a PCI address: a domain that depends on the node's name, bus N (0 to 255), device and function 0
//
// A shape with spec.nodeName belongs to a node: spec.nodeName and usually the pool's name are ${node}. A shape without
// it (allNodes, nodeSelector, perDeviceNodeSelection) is shared: its pool has the same name whatever the node, and is
// published once.
type Shape struct {
	name      string
	documents []string
	shared    bool
	pool      string
}

var placeholder = regexp.MustCompile(`\$\{([^}]*)\}`)

// BuiltinShapes are the names of the shapes that come with this package.
func BuiltinShapes() []string {
	entries, err := builtin.ReadDir("shapes")
	if err != nil {
		// The folder is part of the binary.
		panic(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".yaml"))
	}
	return names
}

// LoadShape returns the built-in shape of that name, or the one in the file at that path.
func LoadShape(nameOrPath string) (*Shape, error) {
	if slices.Contains(BuiltinShapes(), nameOrPath) {
		data, err := builtin.ReadFile(path.Join("shapes", nameOrPath+".yaml"))
		if err != nil {
			return nil, fmt.Errorf("reading shape %s: %w", nameOrPath, err)
		}
		return ParseShape(nameOrPath, data)
	}
	data, err := os.ReadFile(nameOrPath)
	if err != nil {
		return nil, fmt.Errorf("reading a shape (built in are %s): %w", strings.Join(BuiltinShapes(), ", "), err)
	}
	return ParseShape(nameOrPath, data)
}

// ParseShape reads a shape. The name is for messages.
func ParseShape(name string, data []byte) (*Shape, error) {
	s := &Shape{name: name}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("shape %s: %w", name, err)
		}
		var content any
		if err := yaml.Unmarshal(document, &content); err != nil {
			return nil, fmt.Errorf("shape %s: %w", name, err)
		}
		if content != nil {
			s.documents = append(s.documents, string(document))
		}
	}
	if len(s.documents) == 0 {
		return nil, fmt.Errorf("shape %s has no ResourceSlice", name)
	}
	// Two nodes show what depends on the node.
	first, err := s.Render("driver.example.com", "node-1")
	if err != nil {
		return nil, err
	}
	second, err := s.Render("driver.example.com", "node-2")
	if err != nil {
		return nil, err
	}
	s.shared = first[0].Spec.NodeName == nil
	if s.shared {
		s.pool = first[0].Spec.Pool.Name
		if s.pool != second[0].Spec.Pool.Name {
			return nil, fmt.Errorf("shape %s: a shared pool's name must not depend on the node", name)
		}
	}
	return s, nil
}

// Render makes the slices that the driver publishes for the node, complete but for names, owner and generation. The
// driver's name replaces the one in the shape. For a shared shape the node only fills placeholders.
func (s *Shape) Render(driver, node string) ([]resourcev1.ResourceSlice, error) {
	var rendered []resourcev1.ResourceSlice
	for i, document := range s.documents {
		text, err := expand(document, node)
		if err != nil {
			return nil, fmt.Errorf("shape %s, document %d: %w", s.name, i+1, err)
		}
		var slice resourcev1.ResourceSlice
		if err := yaml.UnmarshalStrict([]byte(text), &slice); err != nil {
			return nil, fmt.Errorf("shape %s, document %d: %w", s.name, i+1, err)
		}
		slice.Spec.Driver = driver
		slice.Spec.Pool.ResourceSliceCount = int64(len(s.documents))
		rendered = append(rendered, slice)
	}
	return rendered, s.check(rendered, node)
}

// check refuses what the API server would accept and nobody means.
func (s *Shape) check(rendered []resourcev1.ResourceSlice, node string) error {
	first := rendered[0].Spec
	for i, slice := range rendered {
		if slice.Kind != "ResourceSlice" || slice.APIVersion != resourcev1.SchemeGroupVersion.String() {
			return fmt.Errorf("shape %s, document %d: want kind ResourceSlice of %s",
				s.name, i+1, resourcev1.SchemeGroupVersion)
		}
		if slice.Spec.Pool.Name == "" || slice.Spec.Pool.Name != first.Pool.Name {
			return fmt.Errorf("shape %s, document %d: all slices need the same pool name", s.name, i+1)
		}
		if (slice.Spec.NodeName == nil) != (first.NodeName == nil) {
			return fmt.Errorf("shape %s, document %d: either all slices have a nodeName or none", s.name, i+1)
		}
		if slice.Spec.NodeName != nil && *slice.Spec.NodeName != node {
			return fmt.Errorf("shape %s, document %d: nodeName must be ${node}", s.name, i+1)
		}
	}
	return nil
}

// expand replaces the placeholders of a document.
func expand(document, node string) (string, error) {
	var failure error
	text := placeholder.ReplaceAllStringFunc(document, func(match string) string {
		kind, key, _ := strings.Cut(match[2:len(match)-1], ":")
		switch kind {
		case "node":
			return node
		case "uuid":
			return uuid.NewSHA1(uuid.NameSpaceDNS, []byte(node+"/"+key)).String()
		case "pci":
			bus, err := strconv.ParseUint(key, 10, 8)
			if err != nil {
				failure = fmt.Errorf("%s: want a bus number from 0 to 255", match)
			}
			domain := fnv.New32a()
			// Writing to a hash never fails.
			_, _ = domain.Write([]byte(node))
			return fmt.Sprintf("%04x:%02x:00.0", domain.Sum32()&0xffff, bus)
		default:
			failure = fmt.Errorf("unknown placeholder %s", match)
			return match
		}
	})
	return text, failure
}
