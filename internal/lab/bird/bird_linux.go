package bird

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// BIRD is what runs in a host until the test ends.
type BIRD struct {
	*netns.Proc

	t      testing.TB
	h      *netns.Host
	folder string
}

// Start starts BIRD with a configuration, and waits until it takes commands.
func Start(t testing.TB, h *netns.Host, conf string) *BIRD {
	t.Helper()
	netns.Tool(t, "birdc")
	folder, err := os.MkdirTemp("", "bird") // short: a socket is in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	b := &BIRD{t: t, h: h, folder: folder}
	b.Again(conf)
	return b
}

// Kill kills BIRD: it tells nobody.
func (b *BIRD) Kill() {
	b.t.Helper()
	b.Signal(syscall.SIGKILL)
	_ = b.Wait()
}

// Again starts BIRD after it has ended, with more arguments, such as "-R" for a graceful restart.
func (b *BIRD) Again(conf string, more ...string) {
	b.t.Helper()
	b.write(conf)
	b.h.Run("bird", "-p", "-c", b.file("conf")) // says what is wrong with it
	os.Remove(b.file("ctl"))                    // of one that was killed
	b.Proc = b.h.Start("bird", append([]string{"-f", "-c", b.file("conf"), "-s", b.file("ctl"), "-P", b.file("pid")}, more...)...)
	b.h.Until("BIRD runs", func() bool { _, err := os.Stat(b.file("ctl")); return err == nil })
}

func (b *BIRD) file(name string) string { return filepath.Join(b.folder, name) }

func (b *BIRD) write(conf string) {
	b.t.Helper()
	if err := os.WriteFile(b.file("conf"), []byte(conf), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// Configure has BIRD read another configuration.
func (b *BIRD) Configure(conf string) {
	b.t.Helper()
	b.write(conf)
	b.Do("configure")
}

// Do returns what BIRD says to a command, such as "show", "route".
func (b *BIRD) Do(command ...string) string {
	b.t.Helper()
	return b.h.Run("birdc", b.args(command)...)
}

// Try is Do that does not end the test: BIRD may have nothing to show.
func (b *BIRD) Try(command ...string) string {
	b.t.Helper()
	out, _ := b.h.Try(b.t.Context(), "birdc", b.args(command)...)
	return out
}

func (b *BIRD) args(command []string) []string {
	return append([]string{"-s", b.file("ctl")}, command...)
}
