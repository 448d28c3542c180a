// Package version says which build of a program is running.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Of returns the line that -version prints: name, version of the module, commit, Go version and platform.
func Of(program string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return program + " (unknown version)"
	}
	return line(program, info)
}

func line(program string, info *debug.BuildInfo) string {
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	text := program + " " + info.Main.Version
	if info.Main.Version == "" {
		text = program + " (devel)"
	}
	if rev := set["vcs.revision"]; rev != "" {
		text += " commit " + rev[:min(len(rev), 12)]
		if set["vcs.modified"] == "true" {
			text += " with changes"
		}
	}
	return fmt.Sprintf("%s, %s %s/%s", text, info.GoVersion, runtime.GOOS, runtime.GOARCH)
}
