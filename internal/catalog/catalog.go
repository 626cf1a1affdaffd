package catalog

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
)

//go:embed drivers/*.yaml
var embedded embed.FS

// Catalog is a set of driver entries.
type Catalog struct {
	entries map[string]*Entry
}

// Entry is what is known about one driver.
type Entry struct {
	// Driver is the driver's name as in ResourceSlice spec.driver.
	Driver string `json:"driver"`

	// Types says by which attributes a device is of a type. All requirements of a type must hold. A type that the driver
	// never publishes is absent.
	Types map[v1alpha1.DeviceType][]v1alpha1.AttributeRequirement `json:"types"`

	// Model is the string attribute that holds the product name; empty if the driver publishes none.
	Model string `json:"model,omitempty"`

	// Memory are the capacities that hold the device memory, the first that a device publishes counting; empty if the
	// driver publishes none.
	Memory []string `json:"memory,omitempty"`

	// Cards says how devices name the physical card that they are on.
	Cards CardKeys `json:"cards,omitzero"`
}

// CardKeys are names of attributes that name a physical card. Devices of one resource pool that agree in any of them
// are on the same card.
type CardKeys struct {
	// Self are attributes by which a card names itself.
	Self []string `json:"self,omitempty"`
	// Parent are attributes by which a part of a card names the card.
	Parent []string `json:"parent,omitempty"`
}

// Embedded is the catalogue that the program carries.
func Embedded() (*Catalog, error) {
	folder, err := fs.Sub(embedded, "drivers")
	if err != nil {
		return nil, err
	}
	return Load(folder)
}

// Load reads every YAML file of a folder as an Entry. The error names the file and what is wrong in it.
func Load(folder fs.FS) (*Catalog, error) {
	files, err := fs.Glob(folder, "*.yaml")
	if err != nil {
		return nil, err
	}
	catalog := &Catalog{entries: map[string]*Entry{}}
	for _, file := range files {
		entry, err := readEntry(folder, file)
		if err != nil {
			return nil, fmt.Errorf("catalogue file %s: %w", file, err)
		}
		catalog.entries[entry.Driver] = entry
	}
	return catalog, nil
}

// Entry returns what is known about a driver, or nil.
func (c *Catalog) Entry(driver string) *Entry {
	return c.entries[driver]
}

// Drivers are the names of the known drivers, sorted.
func (c *Catalog) Drivers() []string {
	return slices.Sorted(maps.Keys(c.entries))
}

func readEntry(folder fs.FS, file string) (*Entry, error) {
	content, err := fs.ReadFile(folder, file)
	if err != nil {
		return nil, err
	}
	entry := &Entry{}
	if err := yaml.UnmarshalStrict(content, entry); err != nil {
		return nil, err
	}
	if want := entry.Driver + ".yaml"; path.Base(file) != want {
		return nil, fmt.Errorf("driver is %q, so the file must be named %s", entry.Driver, want)
	}
	return entry, entry.check()
}

func (e *Entry) check() error {
	var problems []error
	if len(e.Types[v1alpha1.DeviceWhole]) == 0 {
		problems = append(problems, errors.New("types must say what a Whole device is"))
	}
	for deviceType, requirements := range e.Types {
		switch deviceType {
		case v1alpha1.DeviceWhole, v1alpha1.DevicePartition, v1alpha1.DevicePassthrough:
		default:
			problems = append(problems, fmt.Errorf("types must not have %q", deviceType))
		}
		for _, r := range requirements {
			if r.Name == "" || r.Operator == "" {
				problems = append(problems, fmt.Errorf("types.%s must have name and operator", deviceType))
			}
		}
	}
	return errors.Join(problems...)
}
