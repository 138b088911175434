package run

import "runtime/debug"

// revisionLength is how much of a commit's name tells it apart.
const revisionLength = 12

// Version is the version of the module that the program was built from, or the revision of its working copy; "devel" when the build
// noted neither, as with -buildvcs=false.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	noted := map[string]string{}
	for _, s := range info.Settings {
		noted[s.Key] = s.Value
	}
	revision := noted["vcs.revision"]
	if revision == "" {
		return "devel"
	}
	revision = revision[:min(len(revision), revisionLength)]
	if noted["vcs.modified"] == "true" {
		revision += "-dirty"
	}
	return revision
}
