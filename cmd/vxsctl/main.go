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
	"slices"
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

// do runs one command: help if a word before "--" asks for it.
func (s *session) do(ctx context.Context, args []string) error {
	options := args
	if i := slices.Index(args, "--"); i >= 0 {
		options = args[:i]
	}
	if slices.ContainsFunc(options, func(word string) bool { return word == "-h" || word == "-help" || word == "--help" }) {
		args = []string{"help"}
	}
	if len(args) == 0 {
		return misused("a command is required, one of " + objects)
	}
	return s.command(ctx, args[0], &words{rest: args[1:]})
}

// A command is what the first word says. One with a table shows that, unless an operation follows. do has those that are not in lists.
type command struct {
	name  string
	table table              // of the answer to GET /v1/NAME
	keys  []string           // parameters of that request
	ops   []string           // beside show
	lists map[string]sublist // operations that show another list
	do    func(s *session, ctx context.Context, w *words) error
}

// A sublist is a list of the API as a table, with the parameters of its request.
type sublist struct {
	path  string
	table table
	keys  []string
}

var commands = []command{
	{name: "fdb", table: fdbTable, keys: []string{"vni", "dev"}, ops: []string{api.Add, api.Append, api.Replace, api.Del}, do: (*session).fdb},
	{name: "neigh", table: neighTable, keys: []string{"vni"}, ops: []string{api.Add, api.Replace, api.Del}, do: (*session).neigh},
	{name: "mdb", table: mdbTable, keys: []string{"vni"}},
	{name: "route", table: routeTable, keys: []string{"vrf"}, ops: []string{api.Add, api.Append, api.Replace, api.Del}, do: (*session).route},
	{name: "vtep", table: vtepTable},
	{name: "port", table: portTable, ops: []string{api.Add, api.Del}, do: (*session).port},
	{name: "vni", table: vniTable, keys: []string{"vni"}},
	{name: "drops", table: dropsTable},
	{name: "policy", table: policyTable},
	{name: "flood", table: floodTable},
	{name: "bfd", table: bfdTable},
	{name: "flows", table: flowsTable},
	{name: "flannel", table: flannelTable, ops: []string{"leases"}, lists: flannelLists},
	{name: "evpn", table: evpnTable, ops: []string{"peers", "vni", "es", "routes", "duplicates", api.Clear}, lists: evpnLists, do: (*session).evpnClear},
	{name: "bgp", table: bgpTable, ops: []string{"peers", "routes"}, lists: bgpLists},
	{name: "calico", table: calicoTable},
	{name: "ovsdb", table: ovsdbTable, ops: []string{"left-out"}, lists: ovsdbLists},
	{name: "discovery", table: discoveryTable, ops: []string{"neighbours", "hosts"}, lists: discoveryLists},
	{name: "waiting", table: waitingTable, keys: []string{"proto"}},
	{name: "config", do: (*session).config},
	{name: "stats", table: statsTable},
	{name: "reload", do: (*session).reload},
	{name: "monitor", do: (*session).monitor},
	{name: "trace", do: (*session).trace},
	{name: "capture", do: (*session).capture},
	{name: "top", do: (*session).top},
	{name: "completion", do: (*session).completion},
	{name: "help", do: (*session).help},
}

// objects has the names of the commands.
var objects string

func init() { // help, one of them, names them
	var names []string
	for _, c := range commands {
		names = append(names, c.name)
	}
	objects = strings.Join(names, ", ")
}

// command runs the command with a name.
func (s *session) command(ctx context.Context, name string, w *words) error {
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == name })
	if i < 0 {
		return misused(fmt.Sprintf("%q: must be one of %s", name, objects))
	}
	w.command = &commands[i]
	if w.table != nil {
		if err := w.operation(); err != nil {
			return err
		}
		if w.op == "show" {
			return s.list(ctx, w, sublist{"/v1/" + w.name, w.table, w.command.keys})
		}
		if l, ok := w.lists[w.op]; ok {
			return s.list(ctx, w, l)
		}
	}
	return w.do(s, ctx, w)
}

func (s *session) help(_ context.Context, w *words) error {
	all := strings.Split(objects, ", ")
	if w.verb(all...); len(w.rest) > 0 {
		return w.not(all...)
	}
	_, err := io.WriteString(s.out, help)
	return err
}

func (s *session) reload(ctx context.Context, w *words) error {
	if _, err := w.keys(); err != nil {
		return err
	}
	if err := s.post(ctx, "/v1/reload", nil); err != nil || s.json {
		return err
	}
	_, err := fmt.Fprintln(s.out, "reloaded")
	return err
}
