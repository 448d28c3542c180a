package docs

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/qemu"
)

// A guest is the virtual machine "vm" of a page.
type guest struct {
	*qemu.Guest
	t       *testing.T
	printed string
}

// newGuest boots a guest with the network card of a page's line for QEMU.
func newGuest(t *testing.T, h *netns.Host, line string) *guest {
	t.Helper()
	var card []string
	words := strings.Fields(line)
	for i, w := range words {
		if w == "-netdev" || w == "-device" {
			card = append(card, w, words[i+1])
		}
	}
	card[len(card)-1] += ",romfile=" // for what the tests have of QEMU
	iperf := check.Must(exec.LookPath("iperf3"))(t)
	return &guest{t: t, Guest: qemu.Boot(t, h, qemu.Config{Card: card, Programs: map[string]string{"/bin/iperf3": iperf}})}
}

func (g *guest) run(where, code string) {
	g.t.Helper()
	g.t.Logf("%s:\n%s", where, code)
	g.printed = g.Run("set -e\n" + code)
}

func (g *guest) want(where, output string) {
	g.t.Helper()
	if line := Missing(output, g.printed); line != "" {
		g.t.Fatalf("%s: no %q in\n%s", where, line, g.printed)
	}
}
