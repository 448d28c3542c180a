package datapath

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// load loads the programs with tables for a few flows, or skips the test.
func load(t testing.TB) *Datapath { t.Helper(); return loadFor(t, 64) }

func loadFor(t testing.TB, flows int) *Datapath {
	t.Helper()
	netns.RequireRoot(t)
	d, err := Load(flows)
	check.OK(t, err)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestLoad(t *testing.T) {
	d := load(t)
	for _, p := range []*ebpf.Program{d.objects.PortIn, d.objects.PortOut, d.objects.TunnelIn} {
		info := check.Must(p.Info())(t)
		n, _ := info.VerifiedInstructions()
		size, _ := info.JitedSize()
		insns, _ := info.Instructions()
		t.Logf("%s: %d instructions, %d verified, %d bytes of machine code", info.Name, len(insns), n, size)
	}
}

// The object is that of the sources, as "make bpf" has recorded.
func TestObject(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(string(check.Must(os.ReadFile("bpf/datapath.sum"))(t))), "\n")
	files := check.Must(filepath.Glob("bpf/*.[cho]"))(t)
	check.Equal(t, "files", len(lines), len(files))
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		if got := fmt.Sprintf("%x", sha256.Sum256(check.Must(os.ReadFile("bpf/"+name))(t))); got != sum {
			t.Errorf("%s is not that of datapath.sum: make bpf", name)
		}
	}
}
