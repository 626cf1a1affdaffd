// Package crd holds the API to its promises on a real API server: which objects it accepts, which it refuses and with
// what message, what it writes into them, and by which names kubectl finds them. It has no code but its tests.
//
// # Samples
//
// Each file under samples is one subject and a list of objects that are accepted or refused. The folder is the kind.
//
//	# samples/gpupool/driver.yaml
//	- accepted: a name with dots                      # a sentence: what is special about it
//	  spec: {driver: {name: gpu.nvidia.com}}          # laid over the smallest legal spec, as a JSON merge patch
//	- refused: an upper-case name
//	  spec: {driver: {name: GPU.nvidia.com}}
//	  field: spec.driver.name                         # what the refusal must name,
//	  message: must be a DNS subdomain, for example gpu.nvidia.com    # and what it must say
//	- refused: another name for an existing pool
//	  before: {driver: {name: gpu.nvidia.com}}        # the sample is an update of this
//	  spec: {driver: {name: gpu.amd.com}}
//	  field: spec.driver.name
//	  message: driver.name is immutable
//
// name sets metadata.name. {times: 64, text: a} is a text of 64 letters, {times: 17, item: x} in a list is 17 items, and
// a: {times: 62, field: x} in an object is the 62 fields a0, a1 and so on.
//
// The folders deviceselector, devicesource and opaquedeviceconfig are for the types of those names, each of which stands
// in several places of the schemas. Their samples have devices, source or opaque instead of spec, name fields that begin
// with that word, and are tried in all of these places:
//
//	# samples/devicesource/source.yaml
//	- refused: a pool and a class                     # under exactly, and as an alternative of firstAvailable
//	  source: {poolName: h100, deviceClassName: h100.gpupool.dev}
//	  field: source
//	  message: exactly one of the fields in [poolName deviceClassName] must be set
//
// Every rule of both schemas has a refused sample, and every field and every value of an enum stands in an accepted
// one: a test compares the samples with the schemas. What a released API accepts it accepts for ever, so a sample may
// move from refused to accepted and never back.
package crd
