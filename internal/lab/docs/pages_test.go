package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

// notRun is what no shell is given, and why: blocks by how they begin, or "## " and all
// under a heading.
var notRun = []struct{ page, begins, why string }{
	{"README.md", "go get", "it needs a registry"},
	{"docs/programs/README.md", "go mod init", "it needs a registry"},
	{"CONTRIBUTING.md", "make test", "minutes and hours; and make test runs this test"},
	{"bench/results/README.md", "go run ./bench/compare", "nearly five minutes of measuring"},
	{"docs/netconf.md", "vxswitchd -schema", "the adapter has no end; the tests of examples/netconf do what it says"},
	{"docs/vm.md", "<interface", "libvirt's own configuration"},
	{"docs/upgrade.md", "./vxswitchd -check -config /etc", "it needs systemd as the first process; TestService of cmd/vxswitchd looks at the unit"},
	{"cmd/vxswitchd/README.md", "./vxsctl capture", "it has no end; TestCaptureLikeTcpdump and TestCapturePipe of vxswitchd do it"},
	{"cmd/vxswitch-cni/README.md", "## Install", "it needs a container runtime; TestReadme of vxswitch-cni reads the network, TestPods runs one"},
	{"cmd/vxswitch-cni/README.md", "## In a flannel network", "it needs the plugin flannel; TestFlannel of vxswitchd makes a pod with this delegate"},
	{"metrics/README.md", "metric_relabel_configs:", "Prometheus's own configuration"},
	{"metrics/README.md", "- alert:", "Prometheus's own configuration"},
	{"docs/install.md", "sha256sum", "TestInstall of release runs it, on a bare Debian"},
	{"docs/install.md", "## Debian package", "TestInstall of release runs it, on a bare Debian"},
	{"docs/install.md", "## Tarball", "TestInstall of release runs it, on a bare Debian"},
	{"docs/install.md", "## With Go", "TestInstall of release runs it, on a bare Debian"},
	{"docs/install.md", "## Container image", "it needs an engine: TestImage of release runs the image without one"},
	{"examples/p2p/README.md", "## macOS and Windows", "it needs those systems"},
	{"examples/p2p/encrypted.md", "## WireGuard", "TestWireGuard of examples/p2p runs it, with forgers"},
	{"examples/p2p/encrypted.md", "## IPsec", "TestIPsec of examples/p2p runs it, in guests whose kernel has ESP"},
}

// A page is one Markdown file of the repository.
type page struct {
	name   string // its path in the repository
	blocks []Block
}

// pages returns all of them.
func pages(t *testing.T) (ps []page) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && file != root:
			return filepath.SkipDir
		case filepath.Ext(file) != ".md":
			return nil
		}
		bs, err := Blocks(file)
		name, _ := filepath.Rel(root, file)
		ps = append(ps, page{filepath.ToSlash(name), bs})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ps
}

// reason returns the row of notRun for a block, or -1.
func (p *page) reason(b Block) int {
	for i, r := range notRun {
		if r.page == p.name && (r.begins == "## "+b.Heading || strings.HasPrefix(b.Text, r.begins)) {
			return i
		}
	}
	return -1
}

// Every block says what it is; what is not run is in the list, and the list has nothing else.
func TestBlocks(t *testing.T) {
	used := make([]bool, len(notRun))
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if i := p.reason(b); i >= 0 {
				used[i] = true
				continue
			}
			switch b.Lang {
			case "sh", "console", "text", "json", "go":
			case "":
				if strings.Contains("\n"+b.Text, "\n$ ") {
					t.Errorf("%s:%d: a drawing with commands in it", p.name, b.Line)
				}
			default:
				t.Errorf("%s:%d: nothing is done with %q", p.name, b.Line, b.Lang)
			}
		}
	}
	for i, r := range notRun {
		if !used[i] {
			t.Errorf("no block of %s begins with %q", r.page, r.begins)
		}
		if m := regexp.MustCompile(`^(Test\w+) of (\S+) runs it`).FindStringSubmatch(r.why); m != nil && !runs(m[1], m[2], r.page) {
			t.Errorf("no %s of %s that runs %s", m[1], m[2], r.page)
		}
	}
}

// runs reports whether a package has a test in a file that names a page.
func runs(test, folder, page string) bool {
	files, _ := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	return slices.ContainsFunc(files, func(file string) bool {
		text, _ := os.ReadFile(file)
		return strings.Contains(string(text), "func "+test+"(") && strings.Contains(string(text), `"`+path.Base(page)+`"`)
	})
}
