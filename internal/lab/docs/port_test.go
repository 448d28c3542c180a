package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// asks is a main that asks the port of docs/programs/port.md what vswitch.Port promises.
const asks = `package main

import (
	"errors"
	"log"
	"net"
	"os"

	"github.com/vxswitch/vxswitch/frame"
)

func main() {
	a, b, err := os.Pipe()
	check(err)
	defer b.Close()
	w := newWire(a)
	if n, ok := any(w).(interface{ Name() string }); !ok || n.Name() == "" {
		log.Fatal("no name")
	}
	read := make(chan error)
	go func() {
		var batch frame.Batch
		read <- w.Readers()[0].Read(&batch)
	}()
	check(w.Close())
	check(w.Close())
	var batch frame.Batch
	for _, err := range []error{<-read, w.Read(&batch)} {
		if !errors.Is(err, net.ErrClosed) {
			log.Fatal(err)
		}
	}
}
`

// A port of one's own keeps to what vswitch.Port says.
func TestPort(t *testing.T) {
	bs, err := Blocks(filepath.Join(root, "docs/programs/port.md"))
	check.OK(t, err)
	var code string
	for _, b := range bs {
		if b.Lang == "go" {
			code = b.Text
		}
	}
	before, after, ok := strings.Cut(code, "func main() {")
	_, port, ok2 := strings.Cut(after, "seg.Add(")
	port, _, ok3 := strings.Cut(port, ", nil)")
	if !ok || !ok2 || !ok3 {
		t.Fatal("no port in the program")
	}
	page := before + "func page() {" + after + "\nfunc newWire(tap io.ReadWriteCloser) *wire { return " + port + " }\n"
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "page.go"), filepath.Join(dir, "asks.go")}
	for i, text := range []string{page, asks} {
		check.OK(t, os.WriteFile(files[i], []byte(text), 0o644))
	}
	c := exec.Command("go", append([]string{"run"}, files...)...)
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
