package cluster

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
)

//go:embed stages/*.yaml
var stages embed.FS

// readStages is kwok's configuration: all stage files as one stream.
func readStages() ([]byte, error) {
	files, err := fs.Glob(stages, "stages/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("looking for kwok's stages: %w", err)
	}
	var stream bytes.Buffer
	for _, file := range files {
		data, err := stages.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading kwok's stages: %w", err)
		}
		stream.WriteString("---\n")
		stream.Write(data)
	}
	return stream.Bytes(), nil
}
