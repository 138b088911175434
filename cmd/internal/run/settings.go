package run

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/hashicorp/go-multierror"
)

// ErrSettings says that a setting of the file, the environment or the command line cannot be used: change it.
var ErrSettings = errors.New("settings")

// Parse reads the command line into cli, a kong structure that embeds *cfg, and fills what the line leaves out from the
// environment and from the settings file (--config, FOLDLINE_CONFIG, or foldline.yaml). An empty variable counts as none.
// The error names every fault at once: unknown keys and variables, values that cannot be read, and what Config.Validate finds.
func Parse(name, description string, cli any, cfg *Config, args []string, options ...kong.Option) (*kong.Context, error) {
	f := loadFile(args)
	src := &sources{file: f.values, faults: f.faults}
	options = append([]kong.Option{
		kong.Name(name), kong.Description(description), kong.Resolvers(src), kong.ValueFormatter(helpWithEnv),
	}, options...)
	parser, err := kong.New(cli, options...)
	if err != nil {
		return nil, err
	}
	cfg.Tables = f.tables
	src.check(parser.Model.Flags)
	ctx, err := parser.Parse(args)
	var invalid *multierror.Error
	if err != nil && !errors.As(err, &invalid) {
		// The line itself is at fault: nobody has looked at the settings yet.
		err = errors.Join(err, src.validate(f.tables))
	}
	return ctx, src.faults.with(err)
}

// sources answers for the flags that the command line leaves out.
type sources struct {
	file   map[string]given
	values map[string]string // of environment and file, readable ones only
	faults faults
}

var _ kong.Resolver = (*sources)(nil)

// Validate has nothing to add: the values were checked when they were collected.
func (s *sources) Validate(*kong.Application) error { return nil }

// Resolve answers with the environment's value of a flag, or with the file's.
func (s *sources) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if v, ok := s.values[flag.Name]; ok {
		return v, nil
	}
	return nil, nil
}

// check reads every value of both sources, whether or not another one beats it, and finds variables that nobody reads.
func (s *sources) check(flags []*kong.Flag) {
	s.values = map[string]string{}
	names := []string{envName("data")} // of the tool; one environment serves all programs
	for _, flag := range flags {
		if !fromEnv(flag.Name) {
			continue
		}
		names = append(names, envName(flag.Name))
		if g, ok := s.file[flag.Name]; ok {
			s.take(flag, g)
		}
		if v := os.Getenv(envName(flag.Name)); v != "" {
			s.take(flag, given{v, envName(flag.Name)})
		}
	}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, envPrefix) && !slices.Contains(names, name) && !serviceLink.MatchString(name) {
			s.faults.addf("%s: no such setting%s", name, didYouMean(name, names))
		}
	}
}

func (s *sources) take(flag *kong.Flag, g given) {
	scratch := reflect.New(flag.Target.Type()).Elem()
	err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: kong.Scan().PushTyped(g.text, kong.FlagValueToken)}, scratch)
	if text := fmt.Sprint(scratch); err == nil && flag.Enum != "" && !slices.Contains(flag.EnumSlice(), text) {
		err = fmt.Errorf("%q is none of %s", text, strings.Join(slices.DeleteFunc(flag.EnumSlice(), func(e string) bool { return e == "" }), ", "))
	}
	if err != nil {
		s.faults.addf("%s: %w", g.where, err)
		return
	}
	s.values[flag.Name] = g.text
}

// validate is what Config.Validate says of the file and the environment alone.
func (s *sources) validate(tables []Table) error {
	var only struct {
		Config `embed:""`
	}
	parser, err := kong.New(&only, kong.Resolvers(s))
	if err != nil {
		return err
	}
	only.Tables = tables
	_, err = parser.Parse(nil)
	return err
}

// faults are what is wrong with the settings; the zero value is ready.
type faults struct{ list *multierror.Error }

func (f *faults) add(err error) {
	f.list = multierror.Append(f.list, err)
	f.list.ErrorFormat = oneLine
}

func (f *faults) addf(format string, args ...any) { f.add(fmt.Errorf(format, args...)) }

// with joins the faults and one more error, nil when there is neither.
func (f *faults) with(err error) error {
	if f.list == nil {
		return err
	}
	if err != nil {
		f.add(err)
	}
	return fmt.Errorf("%w: %w", ErrSettings, f.list)
}

// oneLine writes several faults behind each other.
func oneLine(list []error) string {
	text := make([]string, len(list))
	for i, f := range list {
		text[i] = strings.ReplaceAll(f.Error(), "\n", "; ")
	}
	return strings.Join(text, "; ")
}
