package run

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// DefaultFile is read from the working directory when no other file is named and it is there.
	DefaultFile = "foldline.yaml"
	// maxFileBytes bounds a settings file.
	maxFileBytes = 1 << 20
)

// given is what one source says of a setting, and where it says it.
type given struct{ text, where string }

// file is a settings file, flattened to the flags that its settings are, with all its faults.
type file struct {
	values map[string]given
	tables []Table
	faults faults
}

// loadFile reads the settings file of a command line; one that was not named may be missing.
func loadFile(args []string) *file {
	path, named := configPath(args)
	data, err := readBounded(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return &file{}
	}
	f := &file{values: map[string]given{}}
	if err != nil {
		f.faults.add(err)
		return f
	}
	f.decode(path, data)
	return f
}

// configPath finds the settings file before the line is parsed, because the file takes part in parsing it.
func configPath(args []string) (path string, named bool) {
	for i, a := range args {
		if a == "--" {
			break
		}
		if v, ok := strings.CutPrefix(a, "--config="); ok {
			return v, true
		}
		if a == "--config" && i+1 < len(args) {
			return args[i+1], true
		}
	}
	if v := os.Getenv(envName("config")); v != "" {
		return v, true
	}
	return DefaultFile, false
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		err = fmt.Errorf("%s: larger than %d bytes", path, maxFileBytes)
	}
	return data, err
}

// decode reads tables strictly, and every other setting as the text that a flag would be given.
func (f *file) decode(path string, data []byte) {
	var doc struct {
		Tables []Table              `yaml:"tables"`
		Others map[string]yaml.Node `yaml:",inline"`
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	err := dec.Decode(&doc)
	var types *yaml.TypeError
	switch {
	case errors.As(err, &types):
		for _, text := range types.Errors {
			f.faults.addf("%s: %s", path, text)
		}
	case err != nil && !errors.Is(err, io.EOF):
		f.faults.addf("%s: %w", path, err)
		return
	}
	f.tables = doc.Tables
	known := settingNames()
	for _, name := range slices.Sorted(maps.Keys(doc.Others)) {
		node := doc.Others[name]
		f.flatten(path, known, name, &node)
	}
}

// flatten collects the settings below a node.
func (f *file) flatten(path string, known settingSet, name string, n *yaml.Node) {
	where := fmt.Sprintf("%s line %d", path, n.Line)
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch group := known.isGroup(name); {
	case !group && !known.has(name):
		f.faults.addf("%s: %s: unknown setting%s", where, name, didYouMean(name, known.names))
	case n.Tag == "!!null":
	case group && n.Kind == yaml.MappingNode:
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if seen[key] {
				f.faults.addf("%s: %s.%s: given twice", where, name, key)
			}
			seen[key] = true
			f.flatten(path, known, name+"."+key, n.Content[i+1])
		}
	case group:
		f.faults.addf("%s: %s: is a group of settings, not a value", where, name)
	case n.Kind != yaml.ScalarNode:
		f.faults.addf("%s: %s: has to be a single value", where, name)
	default:
		f.values[flagName(name)] = given{n.Value, where + ": " + name}
	}
}
