// Vxsctl shows and changes a running node, in the words of ip and bridge:
//
//	vxsctl fdb show vni 100
//	vxsctl fdb add 02:00:00:00:00:09 dst 10.0.0.2 vni 100
//	vxsctl monitor
//	vxsctl capture vni 100 | tcpdump -r -
//
// "vxsctl help" lists the commands. The node is cmd/vxswitchd with a control socket in its configuration. Package
// api describes the protocol.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/cmd/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// A session is one run of the program.
type session struct {
	*api.Client
	json   bool // print the answer of the node
	in     *os.File
	out    io.Writer
	notice io.Writer
}

// flags are the flags before a command.
type flags struct {
	*flag.FlagSet
	socket        string
	json, version bool
}

func newFlags() *flags {
	f := &flags{FlagSet: flag.NewFlagSet("vxsctl", flag.ContinueOnError)}
	f.SetOutput(io.Discard)
	f.StringVar(&f.socket, "socket", cmp.Or(os.Getenv("VXSCTL_SOCKET"), api.DefaultSocket), "")
	f.BoolVar(&f.json, "json", false, "")
	f.BoolVar(&f.version, "version", false, "")
	return f
}

// run is the program. It returns the exit status.
func run(ctx context.Context, args []string, in *os.File, stdout, stderr io.Writer) int {
	if len(args) > 1 && args[0] == "complete" && args[1] == "--" {
		return complete(ctx, args[2:], stdout)
	}
	f := newFlags()
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		io.WriteString(stdout, help)
		return 0
	}
	if err == nil && f.version {
		fmt.Fprintln(stdout, version.Of("vxsctl"))
		return 0
	}
	if err != nil {
		err = misused(fmt.Sprintf("%v; flags are -socket PATH, -json and -version", err))
	} else {
		s := &session{Client: api.NewClient(f.socket), json: f.json, in: in, out: stdout, notice: stderr}
		err = s.do(ctx, f.Args())
	}
	var wrong misused
	switch {
	case err == nil:
		return 0
	case errors.As(err, &wrong):
		fmt.Fprintln(stderr, "vxsctl:", wrong)
		return 2
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted before the node has answered: it may have done what it was asked for")
	}
	var said *api.Error
	if errors.As(err, &said) && len(said.Lines) > 0 {
		fmt.Fprintln(stderr, strings.Join(said.Lines, "\n"))
		return 1
	}
	fmt.Fprintln(stderr, "vxsctl:", strings.ReplaceAll(advise(err).Error(), "\n", "; "))
	return 1
}

// advise adds advice to an error of the socket.
func advise(err error) error {
	var socket *net.OpError // not a file
	switch {
	case !errors.As(err, &socket):
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf(`%w: start one with this "socket" in "control", or use -socket`, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf(`%w: run as the user of the node, or change "mode" in its "control"`, err)
	}
	return err
}

// do runs one command.
func (s *session) do(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return misused("a command is required, one of " + objects)
	}
	w := &words{object: args[0], rest: args[1:]}
	for _, word := range w.rest {
		switch word {
		case "-h", "-help", "--help":
			w = &words{object: "help"}
		case "--":
		default:
			continue
		}
		break
	}
	return s.command(ctx, w)
}

func (s *session) command(ctx context.Context, w *words) error {
	switch w.object {
	case "help":
		all := strings.Split(objects, ", ")
		if w.verb(all...); len(w.rest) > 0 {
			return w.not(all...)
		}
		_, err := io.WriteString(s.out, help)
		return err
	case "fdb":
		return s.fdb(ctx, w)
	case "neigh":
		return s.neigh(ctx, w)
	case "route":
		return s.route(ctx, w)
	case "vtep":
		return s.show(ctx, w, vtepTable)
	case "port":
		return s.port(ctx, w)
	case "drops":
		return s.show(ctx, w, dropsTable)
	case "policy":
		return s.show(ctx, w, policyTable)
	case "vni":
		return s.show(ctx, w, vniTable, "vni")
	case "flood":
		return s.show(ctx, w, floodTable)
	case "bfd":
		return s.show(ctx, w, bfdTable)
	case "waiting":
		return s.show(ctx, w, waitingTable, "proto")
	case "stats":
		return s.show(ctx, w, statsTable)
	case "config":
		return s.config(ctx, w)
	case "reload":
		if _, err := w.keys(); err != nil {
			return err
		}
		if err := s.post(ctx, "/v1/reload", nil); err != nil || s.json {
			return err
		}
		_, err := fmt.Fprintln(s.out, "reloaded")
		return err
	case "monitor":
		return s.monitor(ctx, w)
	case "trace":
		return s.trace(ctx, w)
	case "capture":
		return s.capture(ctx, w)
	case "top":
		return s.top(ctx, w)
	case "completion":
		return s.completion(w)
	}
	return misused(fmt.Sprintf("%q: must be one of %s", w.object, objects))
}
