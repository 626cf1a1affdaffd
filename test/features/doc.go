// Package features runs the operator on API servers that lack features of DRA. Servers drop the fields of a feature that
// is switched off without a word, so what is missing must be found out and said. It has no code but its tests.
package features
