package run

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

const (
	// DefaultFile is read from the working directory when no other file is named and it is there.
	DefaultFile = "foldline.yaml"
	// envPrefix stands before every setting in the environment.
	envPrefix = "FOLDLINE"
	// maxFileBytes bounds a settings file.
	maxFileBytes = 1 << 20
)

// Parse reads the command line into cli, a kong structure that embeds *cfg, and fills what the line leaves out from the
// environment and from the settings file (--config, FOLDLINE_CONFIG, or foldline.yaml). An unknown key of the file is
// an error. The result is valid: kong calls Config.Validate, which reports every fault at once.
func Parse(name, description string, cli any, cfg *Config, args []string, options ...kong.Option) (*kong.Context, error) {
	options = append([]kong.Option{
		kong.Name(name), kong.Description(description),
		kong.DefaultEnvars(envPrefix),
	}, options...)
	file, err := loadFile(args)
	if err != nil {
		return nil, err
	}
	options = append(options, kong.Resolvers(file))
	parser, err := kong.New(cli, options...)
	if err != nil {
		return nil, err
	}
	cfg.Tables = file.tables
	return parser.Parse(args)
}

// file is a settings file, flattened to the names that flags have.
type file struct {
	values map[string]string
	tables []Table
}

var _ kong.Resolver = (*file)(nil)

// Validate has nothing to add: the file was decoded strictly.
func (f *file) Validate(*kong.Application) error { return nil }

// Resolve answers with the file's value of a flag, unless the environment has one, which wins.
func (f *file) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, env := range flag.Envs {
		if _, set := os.LookupEnv(env); set {
			return nil, nil
		}
	}
	if v, ok := f.values[flag.Name]; ok {
		return v, nil
	}
	return nil, nil
}

func loadFile(args []string) (*file, error) {
	path, named := configPath(args)
	data, err := readBounded(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
		return &file{}, nil
	case err != nil:
		return nil, fmt.Errorf("settings: %w", err)
	}
	f, err := decodeFile(data)
	if err != nil {
		return nil, fmt.Errorf("settings %s: %w", path, err)
	}
	return f, nil
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
	if v := os.Getenv(envPrefix + "_CONFIG"); v != "" {
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

func decodeFile(data []byte) (*file, error) {
	var strict Config
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&strict); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	f := &file{values: map[string]string{}, tables: strict.Tables}
	if len(doc.Content) > 0 {
		f.flatten("", doc.Content[0])
	}
	return f, nil
}

// flatten collects the scalar settings; tables are no scalars and were decoded as such.
func (f *file) flatten(name string, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		f.values[name] = n.Value
	}
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := flagName(n.Content[i].Value)
		if name != "" {
			key = name + "-" + key
		}
		f.flatten(key, n.Content[i+1])
	}
}

// flagName is the flag's spelling of a setting: wal.max_bytes is wal-max-bytes.
func flagName(setting string) string { return strings.NewReplacer(".", "-", "_", "-").Replace(setting) }
