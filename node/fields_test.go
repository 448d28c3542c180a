package node

import (
	"encoding"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/port/porttest"
	"github.com/vxswitch/vxswitch/port/water"
	"github.com/vxswitch/vxswitch/snoop"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/underlay/afpacket"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// library is all Config structs of the library, each with the part of a configuration that has
// its fields without embedding it, if there is one.
var library = map[reflect.Type]reflect.Type{
	reflect.TypeFor[arp.Config]():                 nil,
	reflect.TypeFor[arp.TableConfig]():            nil,
	reflect.TypeFor[bfd.SessionConfig]():          nil,
	reflect.TypeFor[bfd.UDPConfig]():              nil,
	reflect.TypeFor[control.Config]():             nil,
	reflect.TypeFor[fdb.Config]():                 nil,
	reflect.TypeFor[l3.GatewayConfig]():           nil,
	reflect.TypeFor[l3.InterfaceConfig]():         nil,
	reflect.TypeFor[l3.CrossConnectConfig]():      nil,
	reflect.TypeFor[policy.Config]():              nil,
	reflect.TypeFor[policy.GuardConfig]():         nil,
	reflect.TypeFor[port.BufferedConfig]():        nil,
	reflect.TypeFor[capture.Config]():             nil,
	reflect.TypeFor[port.DeviceConfig]():          nil,
	reflect.TypeFor[porttest.FaultyConfig]():      nil,
	reflect.TypeFor[port.PacketConfig]():          reflect.TypeFor[Port](),
	reflect.TypeFor[port.PipeConfig]():            nil,
	reflect.TypeFor[port.ReadWriteCloserConfig](): nil,
	reflect.TypeFor[water.Config]():               nil,
	reflect.TypeFor[underlay.IPConfig]():          reflect.TypeFor[Tunnel](),
	reflect.TypeFor[memory.Config]():              nil,
	reflect.TypeFor[memory.NetworkConfig]():       nil,
	reflect.TypeFor[afpacket.Config]():            reflect.TypeFor[Tunnel](),
	reflect.TypeFor[underlay.TxConfig]():          nil,
	reflect.TypeFor[underlay.UDPConfig]():         nil,
	reflect.TypeFor[snoop.Config]():               nil,
	reflect.TypeFor[vswitch.AttachConfig]():       nil,
	reflect.TypeFor[vswitch.Config]():             nil,
	reflect.TypeFor[vswitch.TooBigConfig]():       nil,
	reflect.TypeFor[vswitch.TraceConfig]():        nil,
	reflect.TypeFor[vswitch.VSIConfig]():          nil,
	reflect.TypeFor[vtep.Config]():                nil,
	reflect.TypeFor[vtep.PeerConfig]():            nil,
}

// elsewhere is why a Config, or one field, is not in a configuration.
var elsewhere = map[string]string{
	"arp.Config.Table":  "the node makes it, from arp.TableConfig",
	"arp.Config.Locate": "the look-up of the segment's FDB",
	"arp.Config.Inject": "the switch's",
	"arp.Config.Notify": "the switch's",

	"arp.TableConfig.VNI":    "the segment's",
	"arp.TableConfig.Notify": "the switch's",

	"bfd.SessionConfig.Notify": "the node's",
	"bfd.UDPConfig":            "the tunnel's addresses",

	"control.Config.Switch":     "the node's",
	"control.Config.Gateway":    "the node's",
	"control.Config.Neighbours": "the tables of the segments",
	"control.Config.First":      "the first of a segment's tunnels",
	"control.Config.Owners":     "Options.Owners: of the program, which knows its control planes",
	"control.Config.Static":     "the configuration's own rows",

	"fdb.Config": "the switch makes the tables, of vswitch.VSIConfig",

	"l3.InterfaceConfig.VNI":        "the segment's",
	"l3.InterfaceConfig.Neighbours": "the segment's responder",
	"l3.InterfaceConfig.Send":       "the switch's",
	"l3.InterfaceConfig.Notify":     "the switch's",
	"l3.InterfaceConfig.Port":       "the segment's TUN or tunnel for IP",
	"l3.InterfaceConfig.Tunnel":     "the segment's tunnel for IP",
	"l3.CrossConnectConfig":         "the port, the peer and the tunnel of a segment with a CrossConnect",

	"port.BufferedConfig":          "of ports of the program's own: VSI.Add",
	"porttest.FaultyConfig":        "of ports of the program's own: VSI.Add",
	"port.PipeConfig":              "of ports of the program's own: VSI.Add",
	"port.ReadWriteCloserConfig":   "of ports of the program's own: VSI.Add",
	"water.Config":                 "of ports of the program's own: VSI.Add",
	"port.DeviceConfig.Existing":   "the node sets it to open a device again",
	"port.DeviceConfig.Persistent": "of programs that remove the device themselves",
	"port.DeviceConfig.Home":       "the node sets it to open a veth pair again",
	"port.PacketConfig.Control":    "a func",
	"port.PacketConfig.Leave":      "the tunnels that share the address of a gateway on the device",

	"underlay.IPConfig.Control":     "a func",
	"underlay.IPConfig.DefaultTTL":  "every packet of a VTEP has a TTL: vtep.Header",
	"memory.Config":                 "for tests of programs",
	"memory.NetworkConfig":          "for tests of programs",
	"afpacket.Config.Control":       "a func",
	"afpacket.Config.Shared":        "whether a gateway has the address, on a port of the device",
	"afpacket.Config.DefaultTTL":    "every packet of a VTEP has a TTL: vtep.Header",
	"underlay.UDPConfig.Control":    "a func",
	"underlay.UDPConfig.DefaultTTL": "every packet of a VTEP has a TTL: vtep.Header",

	"vtep.Config.Own": "an interface, for Go",

	"vtep.Header.Sockets": "the number of sockets with a peer's underlay.TxConfig",

	"snoop.Config.Send": "the switch's",

	"vswitch.AttachConfig.Match":    "match of a member",
	"vswitch.AttachConfig.Shut":     "the node shuts and opens while it changes things",
	"vswitch.AttachConfig.KeepOpen": "the node closes ports itself",
	"vswitch.AttachConfig.Role":     "a control plane sets it: Node.SetRole",
	"vswitch.AttachConfig.Slots":    "stages: the policies, guard and clamp of a member",
	"vswitch.Config.Log":            "Options.Log: of the program",
	"vswitch.TraceConfig":           "of one trace, asked for while the node runs",
	"vswitch.VSIConfig.Slots":       "stages: the policy, neighbours and gateway of a segment",
}

// What the library can be told, a configuration can say, or a list says why not.
func TestFields(t *testing.T) {
	type field struct {
		owner reflect.Type
		name  string
	}
	has := map[field]bool{}
	seen := map[reflect.Type]bool{}
	var walk func(x reflect.Type)
	walk = func(x reflect.Type) {
		if x = object(x); x == nil || seen[x] {
			return
		}
		seen[x] = true
		for _, f := range reflect.VisibleFields(x) {
			if !keyed(f) {
				continue
			}
			owner := x
			if n := len(f.Index); n > 1 {
				owner = x.FieldByIndex(f.Index[:n-1]).Type
			}
			has[field{owner, f.Name}] = true
			if x := f.Type; x.Kind() == reflect.Slice && x.Elem().Kind() == reflect.Uint8 && !reflect.PointerTo(x.Elem()).Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
				t.Errorf("%v.%s: JSON has a list of bytes as a text in base64; use uint16", owner, f.Name)
			}
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[Config]())

	used := map[string]bool{}
	excused := func(name string) bool {
		used[name] = true
		return elsewhere[name] != ""
	}
	found := 0
	checked := map[reflect.Type]bool{}
	var check func(c, stands reflect.Type)
	check = func(c, stands reflect.Type) {
		if checked[c] || excused(c.String()) {
			return
		}
		checked[c] = true
		for i := range c.NumField() {
			f := c.Field(i)
			name := c.String() + "." + f.Name
			in := has[field{c, f.Name}]
			if stands != nil {
				x, ok := stands.FieldByName(f.Name)
				in = ok && x.Type == f.Type && keyed(x)
			}
			switch {
			case !f.IsExported():
			case f.Anonymous && f.Tag.Get("json") == "":
				check(f.Type, nil)
			case in && excused(name):
				t.Errorf("%s is in a configuration, and in a list of what is not", name)
			case in:
				found++
				if x := object(f.Type); x != nil && strings.HasPrefix(x.PkgPath(), module) {
					check(x, nil)
				}
			case !excused(name):
				t.Errorf("%s is not in a configuration; give it a key, or say in a list why it has none", name)
			}
		}
	}
	for c, stands := range library {
		check(c, stands)
	}
	for name, why := range elsewhere {
		if !used[name] || why == "" {
			t.Errorf("%s is in the list: no such field, or no reason", name)
		}
	}
	if found < 100 {
		t.Errorf("only %d fields are in a configuration", found)
	}
}

const module = "github.com/vxswitch/vxswitch/"

// keyed reports whether a field is a key of the file.
func keyed(f reflect.StructField) bool {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return key != "" && key != "-"
}

// object returns the struct that is at the end of lists and pointers, nil if it is none or has a
// text or JSON of its own.
func object(x reflect.Type) reflect.Type {
	for x.Kind() == reflect.Pointer || x.Kind() == reflect.Slice || x.Kind() == reflect.Map {
		x = x.Elem()
	}
	if x.Kind() != reflect.Struct {
		return nil
	}
	switch reflect.New(x).Interface().(type) {
	case *Config:
	case encoding.TextUnmarshaler, json.Unmarshaler:
		return nil
	}
	return x
}

// The list of Config structs is that of the source.
func TestLibrary(t *testing.T) {
	var want, got []string
	for c := range library {
		got = append(got, c.String())
	}
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			_, mod := os.Stat(filepath.Join(file, "go.mod")) // metrics and hostnet, of which a node knows nothing
			if file != ".." && (mod == nil || strings.HasPrefix(name, ".") || slices.Contains([]string{"internal", "examples", "bench", "fuzz", "node", "testdata"}, name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				if x, ok := s.(*ast.TypeSpec); ok && x.Name.IsExported() && strings.HasSuffix(x.Name.Name, "Config") {
					if _, ok := x.Type.(*ast.StructType); ok {
						want = append(want, f.Name.Name+"."+x.Name.Name)
					}
				}
			}
		}
		return nil
	})
	must(t, err)
	slices.Sort(want)
	slices.Sort(got)
	want = slices.Compact(want) // of one system each
	if !slices.Equal(got, want) {
		t.Errorf("the list has\n%v\nthe source\n%v", got, want)
	}
}
