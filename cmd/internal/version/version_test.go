package version

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestLine(t *testing.T) {
	set := func(pairs ...string) (list []debug.BuildSetting) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, debug.BuildSetting{Key: pairs[i], Value: pairs[i+1]})
		}
		return list
	}
	end := ", go1.26.0 " + runtime.GOOS + "/" + runtime.GOARCH
	for _, c := range []struct {
		version  string
		settings []debug.BuildSetting
		want     string
	}{
		{"v1.2.3", nil, "p v1.2.3"},
		{"", nil, "p (devel)"},
		{"(devel)", set("vcs.revision", "0123456789abcdef0123", "vcs.modified", "true"), "p (devel) commit 0123456789ab with changes"},
		{"v0.1.0", set("vcs.revision", "0123", "vcs.modified", "false"), "p v0.1.0 commit 0123"},
	} {
		info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: c.version}, Settings: c.settings}
		if got := line("p", info); got != c.want+end {
			t.Errorf("%q, want %q", got, c.want+end)
		}
	}
}
