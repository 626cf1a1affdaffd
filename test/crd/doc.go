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
// name sets metadata.name. {times: 64, text: a} is a text of 64 letters, and {times: 17, item: x} in a list is 17
// items. The folder deviceselector is for the type of that name, which stands in both kinds. Its samples have devices
// instead of spec and are tried in both.
//
// Every rule of both schemas has a refused sample, and every field and every value of an enum stands in an accepted
// one: a test compares the samples with the schemas. What a released API accepts it accepts for ever, so a sample may
// move from refused to accepted and never back.
package crd
