// Package source fills an inventory: from an API server, which it watches, or from a folder of captured objects.
//
// Objects are decoded into compact forms as they arrive, event by event or page by page, so that no list of API objects
// is ever kept. A connection that breaks is made again; what was missed meanwhile arrives as a replacement of the whole
// kind, which changes nothing where nothing changed.
//
// The package decides nothing and counts nothing. It knows how objects travel, and internal/inventory what they mean.
package source
