package run

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// envPrefix stands before every setting in the environment.
const envPrefix = "FOLDLINE_"

// serviceLink is what Kubernetes puts into the environment of every container for a service whose name begins with foldline.
var serviceLink = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_[A-Z]+)?)?)$`)

// fromEnv tells whether a flag of the program itself, not of a command, may come from the environment.
func fromEnv(flag string) bool { return flag != "help" && flag != "version" }

// envName is a flag's name in the environment.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// flagName is the flag's spelling of a setting: wal.max_bytes is wal-max-bytes.
func flagName(setting string) string { return strings.NewReplacer(".", "-", "_", "-").Replace(setting) }

// helpWithEnv names the variable of each setting.
func helpWithEnv(v *kong.Value) string {
	if v.Flag == nil || !slices.Contains(settingNames().flags(), v.Name) && v.Name != "config" && v.Name != "data" && v.Name != "accept-loss" && v.Name != "predecessor" {
		return v.Help
	}
	return strings.TrimSuffix(v.Help, ".") + " ($" + envName(v.Name) + ")."
}

// settingSet is the names of settings as the file spells them.
type settingSet struct{ names []string }

// settingNames are the settings that the file may hold.
func settingNames() settingSet {
	var s settingSet
	s.collect("", reflect.TypeFor[Config]())
	return s
}

func (s *settingSet) collect(group string, t reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case name == "-" || field.Type.Kind() == reflect.Slice:
		case field.Type.Kind() == reflect.Struct:
			s.collect(group+name+".", field.Type)
		default:
			s.names = append(s.names, group+name)
		}
	}
}

func (s settingSet) has(name string) bool { return slices.Contains(s.names, name) }

func (s settingSet) isGroup(name string) bool {
	return slices.ContainsFunc(s.names, func(n string) bool { return strings.HasPrefix(n, name+".") })
}

func (s settingSet) flags() []string {
	flags := make([]string, len(s.names))
	for i, n := range s.names {
		flags[i] = flagName(n)
	}
	return flags
}

// didYouMean suggests the name that is most like a mistyped one; none when nothing is.
func didYouMean(name string, known []string) string {
	bare := strings.TrimPrefix(name, envPrefix)
	best, least := "", max(2, len(bare)/3)+1
	for _, k := range known {
		if d := distance(bare, strings.TrimPrefix(k, envPrefix)); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance is how many letters have to be put in, taken out or changed to turn a into b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
