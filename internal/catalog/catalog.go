package catalog

import (
	"embed"
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

	// Types says by which attributes a device is of a type. All requirements of a type must hold; a type without any is
	// every device. A type that the driver never publishes is absent.
	Types map[v1alpha1.DeviceType][]v1alpha1.AttributeRequirement `json:"types"`

	// Properties says how the driver publishes what users select by in neutral words.
	Properties Properties `json:"properties,omitzero"`

	// Cards says how devices name the physical card that they are on.
	Cards CardKeys `json:"cards,omitzero"`

	// Rules are what the driver demands besides.
	Rules Rules `json:"rules,omitzero"`
}

// Properties are the neutral properties of devices. One that the driver does not publish is nil.
type Properties struct {
	Model                 *StringProperty   `json:"model,omitempty"`
	Architecture          *StringProperty   `json:"architecture,omitempty"`
	PartitionProfile      *StringProperty   `json:"partitionProfile,omitempty"`
	Memory                *CapacityProperty `json:"memory,omitempty"`
	CUDAComputeCapability *VersionProperty  `json:"cudaComputeCapability,omitempty"`
	GPUDriverVersion      *VersionProperty  `json:"gpuDriverVersion,omitempty"`
}

// StringProperty is published as a string.
type StringProperty struct {
	// Attribute holds the value.
	Attribute string `json:"attribute"`
	// Joined are two attributes that hold the value where Attribute is not published: the parts before and after an
	// underscore.
	Joined []string `json:"joined,omitempty"`
	// Since is the version of the DRA driver that first published it; empty if all known ones do.
	Since string `json:"since,omitempty"`
}

// VersionProperty is published as a version.
type VersionProperty struct {
	// Attribute holds the value.
	Attribute string `json:"attribute"`
	// Since is the version of the DRA driver that first published it; empty if all known ones do.
	Since string `json:"since,omitempty"`
}

// CapacityProperty is published as a capacity.
type CapacityProperty struct {
	// Capacities hold the value, the first that a device publishes counting.
	Capacities []string `json:"capacities"`
	// Unless is an attribute of devices whose capacities are not their own, but those of the card that they are a part of.
	// Such a device has no value.
	Unless string `json:"unless,omitempty"`
}

// CardKeys are names of attributes that name a physical card. Devices of one resource pool that agree in any of them
// are on the same card.
type CardKeys struct {
	// Self are attributes by which a card names itself.
	Self []string `json:"self,omitempty"`
	// Parent are attributes by which a part of a card names the card.
	Parent []string `json:"parent,omitempty"`
}

// Rules are what a driver demands of classes and claims.
type Rules struct {
	// DeviceClassNames are the names that the DeviceClass of a pool of a type must have, because the driver looks at it.
	DeviceClassNames map[v1alpha1.DeviceType]string `json:"deviceClassNames,omitempty"`
	// AllocationMode is the mode that claims must use; empty for any.
	AllocationMode v1alpha1.AllocationMode `json:"allocationMode,omitempty"`
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
