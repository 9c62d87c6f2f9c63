package settings

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Flags of pilot-discovery that have no meaning here yet.
var pilotFlags = struct{ strings, bools []string }{
	strings: []string{
		"ctrlz_port", "ctrlz_address", "log_output_level", "log_target", "log_caller", "log_stacktrace_level", "log_rotate",
		"log_rotate_max_age", "log_rotate_max_backups", "log_rotate_max_size", "vklog",
	},
	bools: []string{"profile", "log_as_json"},
}

// PilotFlags adds, hidden, the flags of pilot-discovery that are accepted without effect, so that
// its command lines start.
func PilotFlags(fs *pflag.FlagSet) {
	for _, name := range pilotFlags.strings {
		fs.StringArray(name, nil, "accepted for pilot-discovery's sake")
		_ = fs.MarkHidden(name)
	}
	for _, name := range pilotFlags.bools {
		fs.Bool(name, false, "accepted for pilot-discovery's sake")
		_ = fs.MarkHidden(name)
	}
}

// instead is what has taken a flag's place.
var instead = map[string]string{
	"ctrlz_port":           ctrlz,
	"ctrlz_address":        ctrlz,
	"log_output_level":     "--logLevel is the level of all, and `coxswain log set AREA=LEVEL` changes that of a part while it runs",
	"log_as_json":          "--logFormat=json does it",
	"log_caller":           "lines name their area, not the place in the code",
	"log_stacktrace_level": "lines have no traces of calls; profiles are at /debug/pprof/",
	"log_target":           "the log goes to standard error; whoever starts the program says where that goes",
	"log_rotate":           "the log goes to standard error; whoever starts the program keeps and turns it over",
	"profile":              "profiles are at /debug/pprof/ of the HTTP and the monitoring port",
}

// ctrlz is what there is in place of the page of that name.
const ctrlz = "`coxswain log` lists and sets levels while it runs, /debug/pprof/ has profiles and memory, /version the version, and `coxswain ui` is a page"

// istiodVariable is a variable of istiod's environment, and what comes of it here.
type istiodVariable struct {
	name string
	fate fate
	// is what is done here, as the variable would say it; empty: no value says so.
	is string
	// note is a setting's name, or what to do.
	note string
}

// fate is what becomes of a variable of istiod's.
type fate int

const (
	isRead     fate = iota // as istiod does
	hasSetting             // a setting of ours says the same
	inPlugins              // an entry of plugins.yaml says the same
	isAlways               // it can't be had otherwise
	isLacking              // what it is about is not there
	isMoot                 // it tunes what is inside of istiod
)

// Elsewhere returns a line for each variable by which istiod is told what it is told elsewhere
// here, or can't be told, where it says something else than is done: deployments are copied.
func (s Settings) Elsewhere(environ []string) (lines []string) {
	var moot []string
	for _, v := range istiodVariables {
		says := lookup(environ, v.name)
		if says == "" || v.fate == isRead {
			continue
		}
		is, then := v.is, ", and "+v.note
		switch v.fate {
		case isMoot:
			moot = append(moot, v.name)
			continue
		case hasSetting:
			is = s.value(v.note)
			then = fmt.Sprintf(", and --%s (%s) is %q", v.note, Variable(v.note), is)
			if v.note == "revision" && says == "default" && is == "" {
				continue
			}
		case isAlways:
			then = fmt.Sprintf(", and here it is always as if it said %q", is)
			if is == "" {
				then = ", and here it is always as without it"
			}
		case inPlugins:
			then = ": for that, " + v.note + " in plugins.yaml"
		}
		if !sameValue(says, is) {
			lines = append(lines, fmt.Sprintf("%s is a variable of istiod's, which isn't read here; it says %q%s", v.name, says, then))
		}
	}
	if len(moot) > 0 {
		lines = append(lines, "variables of istiod's that tune what is inside of it mean nothing here: "+strings.Join(moot, ", "))
	}
	return lines
}

// sameValue reports whether two texts are one value: of a switch, a number or a duration, however
// it is written.
func sameValue(a, b string) bool {
	if a == b {
		return true
	}
	return same(a, b, strconv.ParseBool) || same(a, b, time.ParseDuration) ||
		same(a, b, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) })
}

func same[T comparable](a, b string, parse func(string) (T, error)) bool {
	x, err := parse(a)
	y, err2 := parse(b)
	return err == nil && err2 == nil && x == y
}

// value is a setting's value as text; empty where there is none of that name.
func (s Settings) value(name string) string { return fieldOf(reflect.ValueOf(s), name) }

func fieldOf(v reflect.Value, name string) string {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case strings.Split(f.Tag.Get("setting"), ",")[0] == name:
			return fmt.Sprint(v.Field(i).Interface())
		case f.Type.Kind() == reflect.Struct:
			if found := fieldOf(v.Field(i), name); found != "" {
				return found
			}
		}
	}
	return ""
}

// Ignored returns a line for each flag of pilot-discovery that was given and has no effect.
func Ignored(fs *pflag.FlagSet) []string {
	var lines []string
	fs.Visit(func(f *pflag.Flag) {
		if f.Hidden {
			line := fmt.Sprintf("--%s is a flag of pilot-discovery that has no effect here", f.Name)
			if text := instead[f.Name]; text != "" {
				line += ": " + text
			}
			lines = append(lines, line)
		}
	})
	return lines
}
