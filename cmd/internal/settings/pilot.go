package settings

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// Flags of pilot-discovery that have no meaning here yet.
var pilotFlags = struct{ strings, bools []string }{
	strings: []string{
		"cniNamespace", "ctrlz_port", "ctrlz_address", "log_output_level", "log_target", "log_caller", "log_stacktrace_level", "log_rotate",
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

// Elsewhere returns a line for each variable by which istiod is told what a setting says here,
// where it says something else: deployments are copied.
func (s Settings) Elsewhere(environ []string) (lines []string) {
	for _, v := range []struct{ theirs, ours, is string }{
		{"CLUSTER_ID", "clusterID", s.ClusterID},
		{"POD_NAMESPACE", "namespace", s.Namespace},
		{"REVISION", "revision", s.Revision},
		{"SHARED_MESH_CONFIG", "sharedMeshConfig", s.SharedMeshConfig},
		{"PILOT_MULTICLUSTER_KUBECONFIG_PATH", "clusterKubeconfigs", s.Remotes.Kubeconfigs},
		{"ISTIO_DUAL_STACK", "dualStack", strconv.FormatBool(s.DualStack)},
	} {
		says := lookup(environ, v.theirs)
		if b, err := strconv.ParseBool(says); err == nil && v.ours == "dualStack" {
			says = strconv.FormatBool(b)
		}
		if says != "" && says != v.is && (v.ours != "revision" || says != "default" || v.is != "") {
			lines = append(lines, fmt.Sprintf("%s is a variable of istiod's, which isn't read here; it says %q, and --%s (%s) is %q", v.theirs, says, v.ours, Variable(v.ours), v.is))
		}
	}
	return lines
}

// Ignored returns a line for each flag of pilot-discovery that was given and has no effect.
func Ignored(fs *pflag.FlagSet) []string {
	var lines []string
	fs.Visit(func(f *pflag.Flag) {
		if f.Hidden {
			lines = append(lines, fmt.Sprintf("--%s is a flag of pilot-discovery that has no effect here yet", f.Name))
		}
	})
	return lines
}
