package docs

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Every command of every page is pasted, in the order of the page: it ends well, and prints
// what the page says. A page has two hosts joined by a cable, eth0 at both ends, with
// 10.0.0.1 and 10.0.0.2, in the order in which it names them.
func TestPages(t *testing.T) {
	netns.RequireRoot(t)
	// So that no block waits for the compiler; the programs are linked where the page says so.
	for dir, what := range map[string]string{".": "./examples/...", "cmd": "./..."} {
		build := exec.Command("go", "build", what)
		build.Dir = filepath.Join(root, dir)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s: go build %s: %v\n%s", dir, what, err, out)
		}
	}
	for _, p := range pages(t) {
		if p.commands() > 0 {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				p.run(t)
			})
		}
	}
}

// commands counts the blocks that are run.
func (p *page) commands() (n int) {
	for _, b := range p.blocks {
		if p.reason(b) < 0 && (b.Lang == "sh" || b.Lang == "console") {
			n++
		}
	}
	return n
}

func (p *page) run(t *testing.T) {
	var names []string
	for _, b := range p.blocks {
		if host := cmp.Or(b.Arg, "here"); p.reason(b) < 0 && b.Lang == "sh" && host != "vm" && !slices.Contains(names, host) {
			names = append(names, host)
		}
	}
	if names = append(names, "there")[:max(2, len(names))]; len(names) > 2 {
		t.Fatalf("more than two hosts: %q", names)
	}
	n := netns.New(t)
	a, b := n.Host(names[0]), n.Host(names[1])
	n.Link(a, "10.0.0.1/24", b, "10.0.0.2/24")
	shells := map[string]runner{names[0]: newShell(t, a), names[1]: newShell(t, b)}

	last, skipped := names[0], false // of the last commands
	for _, b := range p.blocks {
		where := fmt.Sprintf("%s:%d", p.name, b.Line)
		no := p.reason(b) >= 0
		switch b.Lang {
		case "sh":
			if skipped = no; no {
				continue
			}
			last = cmp.Or(b.Arg, "here")
			if strings.HasPrefix(b.Text, "qemu-") {
				shells["vm"] = newGuest(t, a, b.Text)
				continue
			}
			shells[last].run(where, b.Text)
		case "console":
			if no {
				continue
			}
			for _, part := range strings.Split("\n"+b.Text, "\n$ ")[1:] {
				command, output, _ := strings.Cut(part, "\n")
				shells[names[0]].run(where, command+"\n")
				shells[names[0]].want(where, output)
			}
		case "text":
			last = cmp.Or(b.Arg, last)
			if !skipped && !no {
				shells[last].want(where, b.Text)
			}
		case "json", "go":
			for _, name := range names {
				if b.Arg != "" {
					shells[name].run(where, "cat >"+b.Arg+" <<'END OF FILE'\n"+b.Text+"END OF FILE\n")
				}
			}
		}
	}
}

// stage makes the machine that a page begins on. The repository is as cloned, at its own
// path, so that the build cache knows it, and what is made in it is gone with the
// shell; so are the names of namespaces, and sockets, in /run.
const stage = `set -e
root=$1 tree=$2 blocks=$3
mount -t tmpfs none /run
mount --bind "$root" "$tree"
mount -t tmpfs none "$root"
cd "$root"
for f in "$tree"/*; do
	if [ -d "$f" ]; then mkdir "${f##*/}"; mount --bind "$f" "${f##*/}"; else cp -p "$f" .; fi
done
while read -r block; do
	set -eo pipefail
	. "$block" </dev/null
	printf '\nend of %s\n' "$block"
done <"$blocks"
`

// A runner does the commands of a page, and waits for what they print.
type runner interface {
	run(where, code string)
	want(where, output string)
}

// A shell of a host, with namespaces of its own for mounts and processes: when it ends, all
// that it has started does.
type shell struct {
	t      *testing.T
	proc   *netns.Proc
	folder string
	blocks *os.File // a pipe that the shell reads the names of its blocks from
	n      int
	mark   int // the length of the output when the last commands began
}

func newShell(t *testing.T, h *netns.Host) *shell {
	t.Helper()
	netns.Tool(t, "unshare")
	repository, err := filepath.Abs(root)
	check.OK(t, err)
	s := &shell{t: t, folder: t.TempDir()}
	pipe, tree, script := filepath.Join(s.folder, "blocks"), filepath.Join(s.folder, "tree"), filepath.Join(s.folder, "stage")
	check.OK(t, os.Mkdir(tree, 0o755))
	check.OK(t, os.WriteFile(script, []byte(stage), 0o644))
	check.OK(t, syscall.Mkfifo(pipe, 0o600))
	if s.blocks, err = os.OpenFile(pipe, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.blocks.Close() })
	s.proc = h.Start("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", script, repository, tree, pipe)
	return s
}

// run has the shell do the commands of a block and waits for their end.
func (s *shell) run(where, code string) {
	s.t.Helper()
	s.t.Logf("%s:\n%s", where, code)
	s.n++
	file := filepath.Join(s.folder, fmt.Sprintf("block%d", s.n))
	check.OK(s.t, os.WriteFile(file, []byte(code), 0o644))
	s.mark = len(s.proc.Output())
	check.Must(fmt.Fprintln(s.blocks, file))(s.t)
	s.proc.WantWithin("\nend of "+file+"\n", 5*time.Minute) // it may link programs, while others do
}

// want waits until the last commands have printed what a page says.
func (s *shell) want(where, output string) {
	s.t.Helper()
	for end := time.Now().Add(netns.Timeout); ; time.Sleep(5 * time.Millisecond) {
		printed := s.proc.Output()[s.mark:]
		line := Missing(output, printed)
		if line == "" {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s: no %q in\n%s", where, line, printed)
		}
	}
}
