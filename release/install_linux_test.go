package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/docs"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// bare returns a folder with a bare Debian: essential packages, and systemd for the unit. It is from the mirrors and
// by the proxies of this machine.
var bare = sync.OnceValues(func() (string, error) {
	sources := "/etc/apt/sources.list.d/debian.sources"
	if _, err := os.Stat(sources); err != nil {
		sources = "/etc/apt/sources.list"
	}
	release, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "", err
	}
	suite := regexp.MustCompile(`(?m)^VERSION_CODENAME=(\w+)$`).FindSubmatch(release)
	if suite == nil {
		return "", fmt.Errorf("/etc/os-release has no VERSION_CODENAME")
	}
	// mmdebstrap has no settings of this machine but those that it is given.
	settings, err := exec.Command("apt-config", "dump", "Acquire").Output()
	if err != nil {
		return "", fmt.Errorf("apt-config: %w", err)
	}
	options := filepath.Join(folder, "apt.conf")
	var kept []string
	for line := range strings.Lines(string(settings)) {
		if regexp.MustCompile(`(?i)^Acquire::(http|https|ftp|Retries)\b`).MatchString(line) && !strings.HasSuffix(line, `"";`+"\n") {
			kept = append(kept, line)
		}
	}
	if err := os.WriteFile(options, []byte(strings.Join(kept, "")), 0o644); err != nil {
		return "", err
	}
	root := filepath.Join(folder, "debian")
	args := []string{"--variant=essential", "--include=systemd", "--format=directory", "--skip=cleanup/apt"}
	if len(kept) > 0 {
		args = append(args, "--aptopt="+options)
	}
	out, err := exec.Command("mmdebstrap", append(args, string(suite[1]), root, sources)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("mmdebstrap: %w\n%s", err, out)
	}
	return root, nil
})

// A machine is a host with a bare Debian of its own.
type machine struct {
	*netns.Host
	t    *testing.T
	root string
}

// newMachine copies the bare Debian, with the files of the release in /root.
func newMachine(t *testing.T) *machine {
	t.Helper()
	netns.RequireRoot(t)
	netns.Tool(t, "mmdebstrap")
	from := dist(t)
	clean, err := bare()
	must(t, err)
	m := &machine{netns.New(t).Host("debian"), t, filepath.Join(t.TempDir(), "root")}
	shell(t, ".", "cp -a "+clean+" "+m.root+"; cp "+from+"/* "+m.root+"/root/")
	return m
}

// do runs commands in it, as root in /root, with /proc and /dev. The folders in binds are there too, and gone after.
func (m *machine) do(commands string, binds ...string) string {
	m.t.Helper()
	m.t.Log(commands)
	script := "set -e; mount -t proc proc " + m.root + "/proc; mount --rbind /dev " + m.root + "/dev; "
	for _, b := range binds {
		script += "mkdir -p " + m.root + b + "; mount --bind " + b + " " + m.root + b + "; "
	}
	// Not by exec: programs of systemd are other ones as process 1, and must see that this is a chroot.
	script += `status=0; chroot ` + m.root + ` env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash -ec "cd; $1" || status=$?; exit $status`
	// Longer than other commands of a lab: one of these compiles all programs.
	ctx, cancel := context.WithTimeout(m.t.Context(), 10*time.Minute)
	defer cancel()
	out, err := netns.Command(ctx, m.NS, "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", commands).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%v, %v:\n%s", err, ctx.Err(), out)
	}
	return string(out)
}

// unit verifies the unit as installed, and starts what it starts.
func (m *machine) unit(file string) {
	m.t.Helper()
	if out := m.do("systemd-analyze verify --man=no " + file); out != "" {
		m.t.Errorf("systemd-analyze verify says:\n%s", out)
	}
	text, err := os.ReadFile(filepath.Join(m.root, file))
	must(m.t, err)
	start := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindSubmatch(text)
	if start == nil {
		m.t.Fatalf("%s starts nothing", file)
	}
	args := contain(m.root, false, strings.Fields(string(start[1])))
	p := m.Start(args[0], args[1:]...)
	p.Want("ready ")
	if out := m.do("vxsctl config"); !strings.Contains(out, "/run/vxswitch/vxswitchd.sock") {
		m.t.Errorf("vxsctl config prints\n%s", out)
	}
	if err := p.Stop(); err != nil {
		m.t.Error(err)
	}
}

// blocks returns the commands of the page under a heading, after those before the first.
func blocks(t *testing.T, heading string) (list []string) {
	t.Helper()
	all, err := docs.Blocks(filepath.Join("..", "docs", "install.md"))
	must(t, err)
	for _, b := range all {
		if b.Lang == "sh" && (b.Heading == "" || b.Heading == heading) {
			list = append(list, b.Text)
		}
	}
	if len(list) < 2 {
		t.Fatalf("%q has no commands", heading)
	}
	return list
}

// Each section of the page, pasted on a bare Debian, ends in programs that say their version and a unit that is right.
func TestInstall(t *testing.T) {
	for heading, unit := range map[string]string{
		"Debian package": "/usr/lib/systemd/system/vxswitchd.service",
		"Tarball":        "/etc/systemd/system/vxswitchd.service",
	} {
		t.Run(heading, func(t *testing.T) {
			m := newMachine(t)
			out := m.do(strings.Join(blocks(t, heading), ""))
			if !strings.Contains(out, "vxswitchd v"+version+" commit ") {
				t.Errorf("no version in\n%s", out)
			}
			m.unit(unit)
			if heading == "Debian package" {
				m.upgrade()
			}
		})
	}
	t.Run("With Go", func(t *testing.T) {
		m := newMachine(t)
		var env []string
		for _, name := range []string{"GOROOT", "GOMODCACHE", "GOCACHE"} {
			out, err := exec.Command("go", "env", name).Output()
			must(t, err)
			env = append(env, strings.TrimSpace(string(out)))
		}
		list := slices.DeleteFunc(blocks(t, "With Go"), func(s string) bool { return strings.HasPrefix(s, "sha256sum") })
		repository := filepath.Join(folder, "first", "repository")
		out := m.do(fmt.Sprintf("PATH=$PATH:%s/bin; export GOMODCACHE=%s GOCACHE=%s GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS=-trimpath; cd %s\n", env[0], env[1], env[2], repository)+
			strings.Join(list, ""), append(env, repository)...)
		if !regexp.MustCompile(`(?m)^vxswitchd .* linux/` + runtime.GOARCH + `$`).MatchString(out) {
			t.Errorf("no version in\n%s", out)
		}
	})
}

// upgrade installs the package over itself and removes it: what its user has written stays until a purge.
func (m *machine) upgrade() {
	m.t.Helper()
	m.do(`echo '{"control": {"socket": "/run/vxswitch/vxswitchd.sock"}}' >/etc/vxswitch/vxswitchd.json
cp /etc/vxswitch/vxswitchd.json mine
dpkg -i vxswitch_*_"$(dpkg --print-architecture)".deb
cmp mine /etc/vxswitch/vxswitchd.json
[ -z "$(dpkg --verify vxswitch | grep -v /etc/vxswitch/)" ]
zcat /usr/share/man/man8/vxsctl.8.gz /usr/share/man/man8/vxswitchd.8.gz /usr/share/man/man8/vxflanneld.8.gz /usr/share/man/man8/vxswitch-cni.8.gz /usr/share/man/man5/vxswitchd.json.5.gz | grep -c '^.TH ' | grep -x 5
vxflanneld -version | grep "^vxflanneld "
/usr/lib/cni/vxswitch-cni -version | grep "^vxswitch-cni "
[ -s /usr/share/bash-completion/completions/vxsctl ] && [ -s /usr/share/zsh/vendor-completions/_vxsctl ] && [ -s /usr/share/fish/vendor_completions.d/vxsctl.fish ]
dpkg --remove vxswitch
cmp mine /etc/vxswitch/vxswitchd.json
dpkg --purge vxswitch
[ ! -e /etc/vxswitch ] && [ ! -e /usr/bin/vxswitchd ] && [ ! -e /usr/share/doc/vxswitch ]
`)
}
