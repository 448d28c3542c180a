package main

import (
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/setting"
)

// A wrong command line is one line that says what is allowed, and status 2; nobody is asked.
func TestWrongWords(t *testing.T) {
	f := newFake(t)
	for words, want := range map[string]string{
		"":                                       "a command is required, one of fdb, neigh,",
		"colour":                                 `"colour": must be one of fdb, neigh,`,
		"-colour":                                "flag provided but not defined: -colour; flags are -socket PATH, -json and -version",
		"fdb list":                               `fdb: "list": must be one of show, add, append, replace, del`,
		"fdb vni":                                "fdb: vni: value is missing, must be 0 to 16777215",
		"fdb vni x":                              `fdb: vni "x": must be 0 to 16777215`,
		"fdb show vrf":                           `fdb: unexpected "vrf"; allowed are vni, dev`,
		"fdb add":                                "fdb: add: requires a MAC such as 02:00:00:00:00:01, or for the flood list 00:00:00:00:00:00 or that of a group",
		"fdb add tap0":                           `fdb: add: "tap0": must be a MAC such as 02:00:00:00:00:01, or for the flood list 00:00:00:00:00:00 or that of a group`,
		"fdb del 1:2:3":                          `fdb: del: "1:2:3": must be a MAC such as`,
		"fdb add 02:00:00:00:00:01 vni 1":        "fdb: add: requires dst ADDR or dev PORT",
		"fdb add 02:00:00:00:00:01 dst 10.0.0.2": "fdb: add: requires vni, 0 to 16777215",
		"fdb add 02:00:00:00:00:01 dst tap0 vni 1":              `fdb: dst "tap0": must be the address of a peer such as 10.0.0.2`,
		"fdb add 02:00:00:00:00:01 dst 10.0.0.2 dev tap0 vni 1": "fdb: add: takes either dst or dev",
		"fdb add 02:00:00:00:00:01 vni 1 vni 2":                 "fdb: vni: duplicate",
		"neigh show dev tap0":                                   `neigh: unexpected "dev"; allowed is vni`,
		"neigh list":                                            `neigh: "list": must be one of show, add, replace, del`,
		"neigh add tap0":                                        `neigh: add: "tap0": must be the address of a host such as 192.168.7.2`,
		"neigh add 10.0.0.1 vni 1":                              "neigh: add: requires lladdr, the MAC of one host such as 02:00:00:00:00:01",
		"neigh add 10.0.0.1 lladdr 02:00:00:00:00:01":           "neigh: add: requires vni, 0 to 16777215",
		"neigh add 10.0.0.1 lladdr x vni 1":                     `neigh: lladdr "x": must be the MAC of one host such as 02:00:00:00:00:01`,
		"neigh add 10.0.0.1 lladdr 02:00:00:00:00:01 dst 10.0.0.2 dev tap0 vni 1": "neigh: add: takes either dst or dev",
		"neigh add 10.0.0.1 lladdr 02:00:00:00:00:01 dev tap0 tunnel vx vni 1":    "neigh: add: tunnel requires dst ADDR",
		"neigh del 10.0.0.1 lladdr 02:00:00:00:00:01 vni 1":                       "neigh: del: takes only vni",
		"neigh del 10.0.0.1 router vni 1":                                         "neigh: del: takes only vni",
		"route list":                                                              `route: "list": must be one of show, add, append, replace, del`,
		"route add":                                                               "route: add: requires a prefix such as 10.0.0.0/8, default, or blackhole and one of these",
		"route add tap0 via 10.0.0.1":                                             `route: add: "tap0": must be a prefix such as 10.0.0.0/8, default, or blackhole and one of these`,
		"route add 10.0.0.0/8":                                                    "route: add: requires via ADDR, vni N, or blackhole before the prefix",
		"route add blackhole 10.0.0.0/8 via 10.0.0.1":                             "route: add: takes either a next hop or blackhole",
		"route add 10.0.0.0/8 via tap0":                                           `route: via "tap0": must be the address of a host such as 192.168.7.2`,
		"route add 10.0.0.0/8 via 10.0.0.1 weight 0":                              `route: weight "0": must be 1 to 255`,
		"route add 10.0.0.0/8 via 10.0.0.1 metric 256":                            `route: metric "256": must be 0 to 255`,
		"route add 10.0.0.0/8 dev tap0":                                           `route: unexpected "dev"; allowed are via, vni, lladdr, dst, tunnel, weight, metric, vrf`,
		"port list":                                                               `port: "list": must be one of show, add, del`,
		"port add":                                                                "port: add: requires the name of a port",
		"port add tap1 type dummy":                                                `port: type "dummy": must be tap, tun, veth, interface or packet`,
		"port add tap1 mtu -1":                                                    `port: mtu "-1": must be a number of bytes`,
		"port add tap1 vlan 5":                                                    "port: add: vlan requires vni",
		"port add tap1 service 5":                                                 "port: add: service requires vni",
		"port add tap1 vni 1 vlan 5 service 6":                                    "port: add: vlan and service exclude each other",
		"port add tap1 vni 1 service 0":                                           `port: service "0": must be the VLAN of a service tag, 1 to 4094`,
		"port add tap1 vni 1 vlan 4095":                                           `port: vlan "4095": must be 1 to 4094`,
		"port del tap1 vni 1":                                                     `port: unexpected argument "vni"`,
		"route show vni 1":                                                        `route: unexpected "vni"; allowed is vrf`,
		"drops tap0":                                                              `drops: unexpected argument "tap0"`,
		"reload now":                                                              `reload: unexpected argument "now"`,
		"monitor fdb":                                                             `monitor: unexpected argument "fdb"`,
		"trace every -1":                                                          `trace: every "-1": must be 1 or more`,
		"trace mac x":                                                             `trace: mac "x": must be a MAC such as 02:00:00:00:00:01`,
		"capture port":                                                            "capture: port: value is missing, must be the name of a port; a filter that begins with port comes after --",
		"capture vni x":                                                           `capture: vni "x": must be 0 to 16777215`,
		"capture vni 1 -c 0":                                                      `capture: -c "0": must be a number of packets, 1 or more`,
		"capture -s 262145":                                                       `capture: -s "262145": must be a number of bytes, 1 to 262144, or 0 for all`,
		"capture tcp -w":                                                          "capture: -w: value is missing, must be a file name, or - for standard output",
		"capture -i eth0":                                                         `capture: unexpected "-i"; flags are -w FILE, -c COUNT and -s SNAPLEN`,
		"capture -":                                                               `capture: unexpected "-": without -w FILE, packets go to standard output`,
		"config list":                                                             `config: "list": must be one of show, apply, diff, del, tunnels, ports, policies, segments, vrfs`,
		"config apply":                                                            "config: apply: requires one file name, or - for standard input",
		"config diff a b":                                                         "config: diff: requires one file name,",
		"fdb -json":                                                               "fdb: -json: comes before the command, as in vxsctl -json fdb",
		"fdb show vni 1 --socket /s":                                              "fdb: --socket PATH: comes before the command, as in vxsctl --socket PATH fdb",
		"capture -json":                                                           "capture: -json: comes before the command",
		"help colour":                                                             `help: "colour": must be one of fdb, neigh,`,
		"fdb append 00:00:00:00:00:00 vni 1":                                      "fdb: append: the flood list requires dst ADDR",
		"fdb del 01:00:5e:01:01:01 vni 1":                                         "fdb: del: the flood list requires dst ADDR",
		"fdb del 00:00:00:00:00:00 vni 1":                                         "fdb: del: the flood list requires dst ADDR",
		"neigh add 10.0.0.1 mac x":                                                `neigh: unexpected "mac"; allowed are lladdr, dst, dev, vni, tunnel, router`,
		"neigh add 10.0.0.1 lladdr 01:00:00:00:00:01 vni 1":                       `neigh: lladdr "01:00:00:00:00:01": must be the MAC of one host`,
		"route add unreachable 10.0.0.0/8":                                        `route: add: "unreachable": must be a prefix such as`,
		"route add 10.0.0.0/8 via 10.0.0.1 dst 10.0.0.2":                          "route: add: via is not allowed with lladdr or dst",
		"route add 10.0.0.0/8 lladdr 02:00:00:00:00:01 vni 1":                     "route: add: lladdr requires dst ADDR",
		"route add 10.0.0.0/8 dst 10.0.0.2":                                       "route: add: dst requires vni, 0 to 16777215",
		"route add 10.0.0.0/8 via 10.0.0.1 tunnel vx":                             "route: add: tunnel requires dst ADDR",
		"config show port tap0":                                                   `config: show: "port": must be one of tunnels, ports, policies, segments, vrfs`,
		"config del tunels vx":                                                    `config: del: "tunels": must be one of tunnels, ports, policies, segments, vrfs`,
		"config apply tunels vx f":                                                `config: apply: "tunels": must be one of tunnels, ports, policies, segments, vrfs`,
		"completion ksh":                                                          `completion: "ksh": must be one of bash, zsh, fish`,
		"-json top":                                                               "top: -json: rates are for a screen",
		"top -interval 1ms":                                                       `top: -interval "1ms": must be a duration of at least 100ms such as 1s`,
	} {
		code, out, errs := f.do(t.Context(), strings.Fields(words)...)
		if code != 2 || out != "" || !strings.HasPrefix(errs, "vxsctl: "+want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: %d %q %q, want %q", words, code, out, errs, want)
		}
	}
	if f.last() != "" {
		t.Errorf("asked %q", f.asked)
	}
}

// Every command begins a line of the help, with the parameters of its table, and so does each of its operations.
func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"-h"}, {"help", "fdb"}, {"fdb", "-h"}, {"capture", "port", "tap0", "--help"}} {
		code, out, errs := do(t.Context(), args...)
		if code != 0 || errs != "" {
			t.Errorf("%d %s", code, errs)
		}
		if lists := setting.Or(api.Lists...); !strings.Contains(strings.Join(strings.Fields(out), " "), lists) {
			t.Errorf("%s are not in the help", lists)
		}
		if types := "[type " + strings.Join(api.PortTypes, "|") + "]"; !strings.Contains(out, types) {
			t.Errorf("%s is not in the help", types)
		}
		for _, c := range commands {
			lines := regexp.MustCompile(`(?m)^  (?:[a-z]+, )*`+c.name+`\b.*`).FindAllString(out, -1)
			if len(lines) == 0 {
				if c.name != "help" {
					t.Errorf("%s is not in the help", c.name)
				}
				continue
			}
			for _, k := range c.keys {
				if !strings.Contains(lines[0], "["+k+" ") {
					t.Errorf("%s: no %s in %q", c.name, k, lines[0])
				}
			}
			for _, op := range c.ops {
				if !regexp.MustCompile(`(?m)^  ` + c.name + ` (?:[a-z]+\|)*` + op + `\b`).MatchString(out) {
					t.Errorf("%s %s is not in the help", c.name, op)
				}
			}
		}
	}
}

// Words become requests, and answers tables.
func TestTables(t *testing.T) {
	f := newFake(t)
	for _, c := range []struct{ words, asked, answer, want string }{
		{"fdb", "GET /v1/fdb", `[{"vni":100,"mac":"02:00:00:00:00:01","dest":"10.0.0.2:4789","dev":"vx","origin":"learned","age":3},
			{"vni":7,"mac":"02:00:00:00:00:02","dest":"tap0","dev":"tap0","vlan":5,"origin":"control","proto":"evpn","age":9,"flags":["sticky"]},
			{"vni":8,"mac":"02:00:00:00:00:02","dest":"tap0","dev":"tap0","vlan":5,"service":true,"origin":"learned","age":1}]`,
			"VNI  MAC                DEST           DEV   VLAN       ORIGIN   PROTO  AGE  FLAGS\n" +
				"100  02:00:00:00:00:01  10.0.0.2:4789  vx    -          learned  -      3s   -\n" +
				"7    02:00:00:00:00:02  tap0           tap0  5          control  evpn   -    sticky\n" +
				"8    02:00:00:00:00:02  tap0           tap0  service 5  learned  -      1s   -\n"},
		{"fdb vni 9", "GET /v1/fdb?vni=9", `[{"vni":9,"mac":"02:00:00:00:00:01","dest":"filter","dev":"","origin":"static","age":3,"flags":["filter"]},
			{"vni":9,"mac":"02:00:00:00:00:02","dest":"group of 10.0.0.2:4789, 10.0.0.3:4789 vni 7","dev":"vx","origin":"static","age":9}]`,
			"VNI  MAC                DEST                                         DEV  VLAN  ORIGIN  PROTO  AGE  FLAGS\n" +
				"9    02:00:00:00:00:01  filter                                       -    -     static  -      -    filter\n" +
				"9    02:00:00:00:00:02  group of 10.0.0.2:4789, 10.0.0.3:4789 vni 7  vx   -     static  -      -    -\n"},
		{"fdb show dev tap0 vni 7", "GET /v1/fdb?dev=tap0&vni=7", `[]`, "VNI  MAC  DEST  DEV  VLAN  ORIGIN  PROTO  AGE  FLAGS\n"},
		{"neigh vni 7", "GET /v1/neigh?vni=7", `[{"vni":7,"ip":"10.0.0.9","mac":"02:00:00:00:00:01","origin":"snooped","state":"reachable","age":2}]`,
			"VNI  ADDRESS   MAC                ORIGIN   PROTO  STATE      AGE\n7    10.0.0.9  02:00:00:00:00:01  snooped  -      reachable  2s\n"},
		{"mdb vni 7", "GET /v1/mdb?vni=7", `[{"vni":7,"dest":"192.0.2.2:4789","dev":"vx","left":200,"why":["router4","router6"]},{"vni":7,"dest":"tap1","dev":"tap1","left":9,"why":["full"]},
			{"vni":7,"dest":"tap2","dev":"tap2","left":0,"why":["router4","router6"],"permanent":true},
			{"vni":7,"group":"239.1.1.1","dest":"tap0","dev":"tap0","left":240}]`,
			"VNI  GROUP      DEST            DEV   LEFT  WHY\n" +
				"7    all        192.0.2.2:4789  vx    200s  router4,router6\n" +
				"7    all        tap1            tap1  9s    full\n" +
				"7    all        tap2            tap2  -     router4,router6\n" +
				"7    239.1.1.1  tap0            tap0  240s  -\n"},
		{"route vrf red", "GET /v1/route?vrf=red", `[{"vrf":"red","prefix":"10.1.0.0/16","kind":"via","proto":"bgp","via":["vni 10 via 10.0.0.9","vni 5 mac 02:00:00:00:00:01 peer 192.0.2.2:4789"]},
			{"vrf":"red","prefix":"10.2.0.0/16","kind":"blackhole","via":[]}]`,
			"VRF  PREFIX       KIND       PROTO  VIA\n" +
				"red  10.1.0.0/16  via        bgp    vni 10 via 10.0.0.9\n" +
				"                                    vni 5 mac 02:00:00:00:00:01 peer 192.0.2.2:4789\n" +
				"red  10.2.0.0/16  blackhole  -      -\n"},
		{"evpn routes type 1", "GET /v1/evpn/routes?type=1", `[{"type":1,"rd":"192.0.2.1:1","vni":10,"esi":"03:02:00:00:00:00:05:00:00:01","vtep":"192.0.2.1","targets":["65000:10"]},
			{"peer":"192.0.2.9","type":1,"rd":"192.0.2.2:2","esi":"03:02:00:00:00:00:05:00:00:01","vtep":"192.0.2.2","targets":["65000:10"],"leftOut":"own"}]`,
			"TYPE  VNI  ROUTE                          VTEP       PEER       TARGETS   NOTES\n" +
				"1     10   03:02:00:00:00:00:05:00:00:01  192.0.2.1  -          65000:10  -\n" +
				"1     -    03:02:00:00:00:00:05:00:00:01  192.0.2.2  192.0.2.9  65000:10  left out: own\n"},
		{"drops", "GET /v1/drops", `[{"where":"tap0","direction":"rx","reason":"unknown-vlan","frames":5}]`,
			"WHERE  DIRECTION  REASON        FRAMES\ntap0   rx         unknown-vlan  5\n"},
		{"flood", "GET /v1/flood", `[{"vni":7,"tunnel":"vx","members":[{"peer":"10.0.0.2:4789","proto":["config","evpn"]},{"peer":"10.0.0.3:4789","proto":["evpn"],"flags":["no-broadcast"]},{"peer":"10.0.0.4:4789","mac":"01:00:5e:01:01:01"}]},{"vni":8,"tunnel":"vx"}]`,
			"VNI  MAC                TUNNEL  PEER           PROTO        FLAGS\n7    -                  vx      10.0.0.2:4789  config,evpn  -\n" +
				"7    -                  vx      10.0.0.3:4789  evpn         no-broadcast\n7    01:00:5e:01:01:01  vx      10.0.0.4:4789  -            -\n" +
				"8    -                  vx      -              -            -\n"},
		{"bgp", "GET /v1/bgp", `{"state":"running","since":"2026-01-02T03:04:05Z","as":64512,"routerID":"192.0.2.1","vrf":"pods","peers":2,"established":1,"announced":["10.65.1.0/26","fd65::/122"],"received":3,"accepted":2,"refused":{"own-block":1},"rowError":"no"}`,
			"WHAT                VALUE\nstate               running since 2026-01-02 03:04:05\nerror               -\nAS                  64512\nrouter ID           192.0.2.1\nVRF                 pods\n" +
				"peers               2\nsessions            1\nannounced           10.65.1.0/26,fd65::/122\nroutes of peers     3\naccepted            2\nrefused, own-block  1\nrefused rows        no\n"},
		{"bgp peers", "GET /v1/bgp/peers", `[{"address":"192.0.2.2","as":64512,"state":"established","since":"2026-01-02T03:04:05Z","holdTime":9,"bfd":"alive","routes":3,"accepted":1,"refused":{"own-block":1,"filtered":2},"received":7,"sent":8},
			{"address":"192.0.2.3","as":64513,"state":"active","routes":0,"accepted":0,"refused":{},"received":0,"sent":1,"error":"hold timer expired"}]`,
			"PEER       AS     STATE        SINCE                HOLD  BFD    ROUTES  ACCEPTED  REFUSED                 RECEIVED  SENT  ERROR\n" +
				"192.0.2.2  64512  established  2026-01-02T03:04:05  9s    alive  3       1         filtered:2,own-block:1  7         8     -\n" +
				"192.0.2.3  64513  active       -                    -     -      0       0         -                       0         1     hold timer expired\n"},
		{"bgp routes", "GET /v1/bgp/routes", `[{"prefix":"10.65.1.0/26","nextHop":"192.0.2.1"},{"prefix":"10.65.2.0/26","nextHop":"192.0.2.2","peer":"192.0.2.2","pathID":1,"via":"vni 200 ip 192.0.2.2"},{"prefix":"10.9.0.0/16","nextHop":"192.0.2.2","peer":"192.0.2.2","pathID":2,"refused":"outside-pools"}]`,
			"PREFIX        NEXT-HOP   PEER       VIA                   NOTES\n" +
				"10.65.1.0/26  192.0.2.1  -          -                     -\n" +
				"10.65.2.0/26  192.0.2.2  192.0.2.2  vni 200 ip 192.0.2.2  path 1\n" +
				"10.9.0.0/16   192.0.2.2  192.0.2.2  -                     refused: outside-pools, path 2\n"},
		{"bgp routes peer 192.0.2.2", "GET /v1/bgp/routes?peer=192.0.2.2", `[{"prefix":"10.65.1.0/26","nextHop":"192.0.2.1"}]`, "PREFIX        NEXT-HOP   PEER  VIA  NOTES\n10.65.1.0/26  192.0.2.1  -     -    -\n"},
		{"discovery", "GET /v1/discovery", `{"state":"running","since":"2026-01-02T03:04:05Z","local":"192.0.2.2","network":7,"servers":[{"address":"192.0.2.1","up":true,"clients":3}],"registry":{"up":true,"vteps":3},` +
			`"neighbours":2,"up":1,"segments":[{"vni":10,"vteps":2,"hosts":1,"remote":3}],"owners":3,"advertisements":4,"received":9,"receivedBytes":900,"sent":8,"sentBytes":800,"refused":{"key":5},"rowError":"no"}`,
			"WHAT                  VALUE\n" +
				"state                 running since 2026-01-02 03:04:05\n" +
				"error                 -\n" +
				"address               192.0.2.2\n" +
				"network               7\n" +
				"server 192.0.2.1      up, lists 3\n" +
				"etcd                  up, lists 3\n" +
				"etcd error            -\n" +
				"clients of this node  0\n" +
				"neighbours up         1 of 2\n" +
				"VTEPs that advertise  3\n" +
				"advertisements        4\n" +
				"vni 10                other VTEPs 2, hosts 1, remote 3\n" +
				"received              9, 900 bytes\n" +
				"sent                  8, 800 bytes\n" +
				"refused, key          5\n" +
				"refused rows          no\n"},
		{"discovery neighbours", "GET /v1/discovery/neighbours", `[{"address":"192.0.2.1","name":"n1","listed":true,"up":true,"since":"2026-01-02T03:04:05Z"},{"address":"192.0.2.3","up":false,"since":"2026-01-02T03:04:06Z"}]`,
			"VTEP       NAME  STATE  SINCE                FROM\n" +
				"192.0.2.1  n1    up     2026-01-02T03:04:05  list\n" +
				"192.0.2.3  -     down   2026-01-02T03:04:06  configuration\n"},
		{"discovery hosts", "GET /v1/discovery/hosts", `[{"vni":10,"mac":"02:00:00:00:00:01","vtep":"192.0.2.1","kind":"advertised","moves":2}]`,
			"VNI  MAC                VTEP       KIND        MOVES\n" +
				"10   02:00:00:00:00:01  192.0.2.1  advertised  2\n"},
		{"bfd", "GET /v1/bfd", `[{"tunnel":"vx","local":"10.0.0.1","peer":"10.0.0.2","status":"alive","state":"up","diagnostic":"none","interval":0.3,"detection":0.9,"stats":{"sent":4,"received":3}},` +
			`{"vrf":"red","vni":7,"local":"10.1.0.1","peer":"10.1.0.2","status":"dead","state":"down","diagnostic":"time-expired","interval":1,"stats":{"sent":5,"received":0},"send_error":"no route"},` +
			`{"proto":"evpn","local":"10.2.0.1","peer":"10.2.0.2","status":"unknown","state":"down","diagnostic":"none","interval":1,"stats":{"sent":6,"received":0}}]`,
			"FOR            LOCAL     PEER      STATUS   STATE  DIAGNOSTIC    INTERVAL  DETECTION  SENT  RECEIVED  ERROR\n" +
				"tunnel vx      10.0.0.1  10.0.0.2  alive    up     none          300ms     900ms      4     3         -\n" +
				"vrf red vni 7  10.1.0.1  10.1.0.2  dead     down   time-expired  1s        0s         5     0         no route\n" +
				"evpn           10.2.0.1  10.2.0.2  unknown  down   none          1s        0s         6     0         -\n"},
		{"flows", "GET /v1/flows", `{"datapath":"kernel","carried":{"frames":9,"bytes":900},"refused":{"stage":2},"misses":{"no-flow":7,"dhcp":1},"flows":[{"vni":7,"src":"02:00:00:00:00:01","dst":"02:00:00:00:00:02","from":"tap0","to":"192.0.2.2:4789","carried":{"frames":9,"bytes":900},"age":12.5,"idle":0},` +
			`{"vni":7,"src":"02:00:00:00:00:02","dst":"02:00:00:00:00:01","tuple":"tcp 10.0.0.2:80 10.0.0.1:4000","from":"tap1","to":"tap0","carried":{"frames":1,"bytes":60},"age":1,"idle":0},` +
			`{"vni":7,"src":"02:00:00:00:00:02","dst":"02:00:00:00:fe:01","tuple":"10.0.0.2 10.1.0.9","hop":"vni 8 mac 02:00:00:00:00:09","from":"tap1","to":"tap3","carried":{"frames":1,"bytes":60},"age":1,"idle":0}]}`,
			"VNI  SRC                DST                FROM  TO              FRAMES  BYTES  AGE    IDLE  PACKETS                        ROUTED\n" +
				"7    02:00:00:00:00:01  02:00:00:00:00:02  tap0  192.0.2.2:4789  9       900    12.5s  0s    all                            -\n" +
				"7    02:00:00:00:00:02  02:00:00:00:00:01  tap1  tap0            1       60     1s     0s    tcp 10.0.0.2:80 10.0.0.1:4000  -\n" +
				"7    02:00:00:00:00:02  02:00:00:00:fe:01  tap1  tap3            1       60     1s     0s    10.0.0.2 10.1.0.9              vni 8 mac 02:00:00:00:00:09\n\n" +
				"WHAT             CAUSE    COUNT\ndatapath kernel  -        -\nframes carried   -        9\n" +
				"pairs refused    stage    2\nframes missed    dhcp     1\nframes missed    no-flow  7\n"},
		{"flows", "GET /v1/flows", `{"datapath":"user","why":"no tcx","flows":[]}`,
			"VNI  SRC  DST  FROM  TO  FRAMES  BYTES  AGE  IDLE  PACKETS  ROUTED\n\nWHAT            CAUSE   COUNT\ndatapath user   no tcx  -\nframes carried  -       0\n"},
		{"waiting proto evpn", "GET /v1/waiting?proto=evpn", `[{"proto":"evpn","state":"waiting","row":"flood vni 7 vtep 10.0.0.2:0","why":"VNI: there is no such segment"}]`,
			"PROTO  STATE    SINCE  ROW                          WHY\nevpn   waiting  -      flood vni 7 vtep 10.0.0.2:0  VNI: there is no such segment\n"},
		{"vtep", "GET /v1/vtep", `[{"name":"vx","type":"vxlan","local":"10.0.0.1:4789","mtu":1464,"peers":[{"addr":"10.0.0.2:4789","listed":true,"mtu":1400,"rx":1,"tx":2,"rx_bytes":60,"tx_bytes":120,"last_heard":"2999-01-01T00:00:00Z"}]}, {"name":"e","type":"ipip","local":"10.0.0.1","local6":"fd00::1","mtu":1480,"peers":[]}]`,
			"TUNNEL  TYPE   LOCAL             PEER           KIND    MTU   RX  RX-BYTES  TX  TX-BYTES  HEARD\n" +
				"vx      vxlan  10.0.0.1:4789     10.0.0.2:4789  listed  1400  1   60        2   120       0s\n" +
				"e       ipip   10.0.0.1,fd00::1  -              -       1480  -   -         -   -         -\n"},
		{"vni show vni 7", "GET /v1/vni?vni=7", `[{"vni":7,"rx":{"frames":3,"bytes":180},"tx":{"frames":4,"bytes":240},"flood":{"broadcast":1,"unknown":1},"drops":{"policy":2,"short":1},
			"members":[{"port":"tap0","vlan":30,"rx":{"frames":3,"bytes":180},"tx":{"frames":1,"bytes":60}},{"port":"vx","rx":{},"tx":{"frames":3,"bytes":180}}]}]`,
			"VNI  PORT  VLAN  RX  RX-BYTES  TX  TX-BYTES  FLOODED  DROPS\n" +
				"7    -     -     3   180       4   240       2        3\n" +
				"7    tap0  30    3   180       1   60        -        -\n" +
				"7    vx    -     0   0         3   180       -        -\n"},
		{"port", "GET /v1/port", `[{"name":"tap0","type":"tap","mtu":1514,"members":[{"vni":7,"tag":0},{"vni":8,"tag":30}],"rx":{"frames":1,"bytes":60},"tx":{"frames":2,"bytes":120},"rx_drops":{"short":3,"policy":4},"tx_drops":{},"state":"up"},
			{"port":-1,"name":"eth1","type":"packet","members":[{"vni":7,"tag":0}],"state":"down","error":"port \"eth1\": no such device"},
			{"port":-1,"name":"tap1","type":"tap","members":[],"state":"unused"}]`,
			"PORT  TYPE    MTU   VNIS          RX  RX-BYTES  TX  TX-BYTES  RX-DROPS  TX-DROPS  STATE   ERROR\n" +
				"tap0  tap     1514  7,8(vlan 30)  1   60        2   120       7         0         up      -\n" +
				"eth1  packet  -     7             -   -         -   -         -         -         down    port \"eth1\": no such device\n" +
				"tap1  tap     -     -             -   -         -   -         -         -         unused  -\n"},
		{"policy", "GET /v1/policy", `[{"name":"p","stats":{"rules":{"web":{"packets":1,"bytes":60}},"default":{"packets":2,"bytes":120},"flows":{"tracked":9}}}]`,
			"POLICY  WHAT        PACKETS  BYTES\np       rule web    1        60\np       default     2        120\np       neighbours  0        0\n" +
				"p       replies     0        -\np       related     0        -\np       fragments   0        -\np       malformed   0        -\np       flows       9        -\n"},
		{"policy", "GET /v1/policy", `[{"name":"guard","vni":7,"port":"tap0","stats":{"mac":3,"arp":1}}]`,
			"POLICY               WHAT         PACKETS  BYTES\nguard of tap0 vni 7  dropped arp  1        -\nguard of tap0 vni 7  dropped mac  3        -\n"},
		{"config", "GET /v1/config", "{\n}\n", "{\n}\n"},
		{"-json drops", "GET /v1/drops", "[ ]\n", "[ ]\n"},
		{"fdb add 02:00:00:00:00:01 dst 10.0.0.2 vni 7", `POST /v1/fdb {"op":"add","vni":7,"mac":"02:00:00:00:00:01","dst":"10.0.0.2"}`, `{"done":"x"}`, ""},
		{"fdb append 00:00:00:00:00:00 vni 7 dst fd00::2", `POST /v1/fdb {"op":"append","vni":7,"mac":"00:00:00:00:00:00","dst":"fd00::2"}`, `{"done":"x"}`, ""},
		{"fdb replace 02:00:00:00:00:01 dev tap0 vni 0", `POST /v1/fdb {"op":"replace","vni":0,"mac":"02:00:00:00:00:01","dev":"tap0"}`, `{"done":"x"}`, ""},
		{"fdb del 02:00:00:00:00:01 vni 7", `POST /v1/fdb {"op":"del","vni":7,"mac":"02:00:00:00:00:01"}`, `{"done":"x"}`, ""},
		{"neigh add 192.168.7.9 lladdr 02:00:00:00:00:09 dst 10.0.0.2 vni 7", `POST /v1/neigh {"op":"add","vni":7,"ip":"192.168.7.9","mac":"02:00:00:00:00:09","dst":"10.0.0.2"}`, `{"done":"x"}`, ""},
		{"neigh replace fd00::9 lladdr 02:00:00:00:00:09 router dev router vni 7", `POST /v1/neigh {"op":"replace","vni":7,"ip":"fd00::9","mac":"02:00:00:00:00:09","dev":"router","router":true}`, `{"done":"x"}`, ""},
		{"-json neigh del 192.168.7.9 vni 7", `POST /v1/neigh {"op":"del","vni":7,"ip":"192.168.7.9"}`, `{"done":"x"}`, `{"done":"x"}`},
		{"route add 10.9.0.0/16 via 192.168.7.2 metric 9 weight 3", `POST /v1/route {"op":"add","prefix":"10.9.0.0/16","via":"192.168.7.2","weight":3,"metric":9}`, `{"done":"x"}`, ""},
		{"route append default via fd00::2 vni 0 vrf red", `POST /v1/route {"op":"append","vrf":"red","prefix":"::/0","vni":0,"via":"fd00::2"}`, `{"done":"x"}`, ""},
		{"route replace 10.9.0.1 vni 7 lladdr 02:00:00:00:00:09 dst 10.0.0.2 tunnel vx", `POST /v1/route {"op":"replace","prefix":"10.9.0.1/32","vni":7,"mac":"02:00:00:00:00:09","dst":"10.0.0.2","tunnel":"vx"}`, `{"done":"x"}`, ""},
		{"route add default vni 5 lladdr 02:00:00:00:00:01 dst 2001:db8::1", `POST /v1/route {"op":"add","prefix":"0.0.0.0/0","vni":5,"mac":"02:00:00:00:00:01","dst":"2001:db8::1"}`, `{"done":"x"}`, ""},
		{"route add blackhole default", `POST /v1/route {"op":"add","prefix":"0.0.0.0/0","blackhole":true}`, `{"done":"x"}`, ""},
		{"route del 10.9.0.0/16", `POST /v1/route {"op":"del","prefix":"10.9.0.0/16"}`, `{"done":"x"}`, ""},
		{"port add tap1 vni 7 service 5", `POST /v1/port {"op":"add","name":"tap1","vni":7,"vlan":5,"service":true}`, `{"applied":true}`, ""},
		{"port add tap1 type tun mtu 1400 queues 2 vni 7 vlan 5", `POST /v1/port {"op":"add","name":"tap1","type":"tun","mtu":1400,"queues":2,"vni":7,"vlan":5}`, `{"applied":true}`, ""},
		{"port del add", `POST /v1/port {"op":"del","name":"add"}`, `{"applied":true}`, ""},
		{"reload", "POST /v1/reload", `{"done":"reloaded"}`, "reloaded\n"},
	} {
		path, _, _ := strings.Cut(strings.Fields(c.asked)[1], "?")
		f.answers[path] = c.answer
		code, out, errs := f.do(t.Context(), strings.Fields(c.words)...)
		if code != 0 || errs != "" || out != c.want || f.last() != c.asked {
			t.Errorf("%s: %d %q\ngot\n%s\nwant\n%s\nasked %s", c.words, code, errs, out, c.want, f.last())
		}
	}
	f.answers["/v1/stats"] = `{"rx":{"frames":4,"bytes":5},"drops":{"short":2},"toobig":{"sent4":3},"fdb":[{}]}`
	if _, out, _ := f.do(t.Context(), "stats"); !regexp.MustCompile(`(?s)from tunnels +4 +5\n.*dropped short +2.*too big, sent4 +3 .*fdb +1`).MatchString(out) {
		t.Errorf("%s", out)
	}
}

// What fails is one line that says what to do, and status 1.
func TestFailures(t *testing.T) {
	f := newFake(t)
	f.answers["/v1/fdb"] = `409 {"error":"it is there: use replace"}`
	f.answers["/v1/reload"] = `422 {"error":"x","lines":["f:1:2: a","f:3:4: b"]}`
	f.answers["/v1/port"] = `500 what`
	f.answers["/v1/vtep"] = `{`
	gone := filepath.Join(filepath.Dir(f.socket), "gone")
	l := check.Must(net.ListenUnix("unix", &net.UnixAddr{Name: gone, Net: "unix"}))(t)
	l.SetUnlinkOnClose(false)
	l.Close()
	for _, c := range []struct{ socket, words, want string }{
		{f.socket, "fdb", "vxsctl: it is there: use replace\n"},
		{f.socket, "reload", "f:1:2: a\nf:3:4: b\n"},
		{f.socket, "port", "vxsctl: " + f.socket + ": status 500 Internal Server Error: is this the socket of a node?\n"},
		{f.socket, "vtep", "vxsctl: " + f.socket + ": invalid answer: unexpected end of JSON input\n"},
		{f.socket, "monitor", "vxsctl: the node closed the stream: it was stopped, or the output was read too slowly\n"},
		{gone, "fdb", "vxsctl: no node listens on " + gone + `: start one with this "socket" in "control", or use -socket` + "\n"},
		{"/nowhere/s", "fdb", "vxsctl: no node listens on /nowhere/s: "},
	} {
		code, out, errs := do(t.Context(), append([]string{"-socket", c.socket}, c.words)...)
		if code != 1 || out != "" || !strings.HasPrefix(errs, c.want) {
			t.Errorf("%s: %d %q %q, want %q", c.words, code, out, errs, c.want)
		}
	}
}
