package qemu

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A guest that is the other end of a TAP answers, and does what it is told.
func TestGuest(t *testing.T) {
	n := netns.New(t)
	a := n.Host("a")
	start := time.Now()
	g := Boot(t, a, Config{Link: "tap0", Addr: "10.0.0.2/24,fd00::2/64", Setup: []string{"echo first >/tmp/setup", "echo second >>/tmp/setup"}})
	t.Logf("up after %v", time.Since(start))
	check.Equal(t, "the TAP is", g.TAP, "tap0")
	a.Addr("tap0", "10.0.0.1/24,fd00::1/64")

	t.Run("ping", func(t *testing.T) {
		for _, addr := range []string{"10.0.0.2", "fd00::2"} {
			a.Ping(addr, 2)
		}
		for _, addr := range []string{"10.0.0.1", "fd00::1"} {
			if out := g.Run("ping -c 2 -W 2 " + addr); !strings.Contains(out, " 2 packets received") {
				t.Errorf("%s", out)
			}
		}
		if _, status := g.Try("ping -c 1 -W 1 10.0.0.3"); status != 1 {
			t.Errorf("a ping of nobody ends with status %d", status)
		}
	})
	t.Run("netcat", func(t *testing.T) {
		g.Run("nc -l -p 7000 -e cat &")
		a.Until("the guest echoes", func() bool {
			out, _ := a.Try(t.Context(), "sh", "-c", "echo hello | busybox nc -w 1 10.0.0.2 7000")
			return out == "hello\n"
		})
	})
	t.Run("MAC", func(t *testing.T) {
		if got := strings.TrimSpace(g.Run("cat /sys/class/net/eth0/address")); got != g.MAC {
			t.Errorf("eth0 has %s, not %s", got, g.MAC)
		}
	})
	t.Run("devices", func(t *testing.T) {
		for _, dev := range []string{"tunl0", "sit0", "ip6tnl0"} {
			g.Run("ip -s link show " + dev)
		}
		g.Run("ip link add dummy0 type dummy; ip addr add 192.168.7.2/32 dev dummy0; ip link set dummy0 up")
		a.Route("192.168.7.2/32", "via", "10.0.0.2")
		a.Ping("192.168.7.2", 1)
	})
	t.Run("shell", func(t *testing.T) { shell(t, g) })
}

// shell tries what the way to the guest and back might break.
func shell(t *testing.T, g *Guest) {
	long := strings.Repeat("0123456789", 2000)
	binary := make([]byte, 256)
	escaped := ""
	for i := range binary {
		binary[i] = byte(i)
		escaped += fmt.Sprintf(`\0%o`, i)
	}
	for _, c := range []struct {
		lines, out string
		status     int
	}{
		{"cat /tmp/setup", "first\nsecond\n", 0},
		{"true", "", 0},
		{"exit 7", "", 7},
		{"echo out; echo err >&2; false", "out\nerr\n", 1},
		{"for i in 1 2; do\n\techo $i\ndone\n", "1\n2\n", 0},
		{"cat", "", 0}, // nothing to read
		{"echo -n " + long, long, 0},
		{"head -c 300000 /dev/zero", strings.Repeat("\x00", 300000), 0},
		{"printf '%b' '" + escaped + "'", string(binary), 0},
		{"(sleep 0.2; echo late) &", "", 0},
		{"sleep 0.4; echo on time", "on time\n", 0},
		{`echo '"$x"' \\`, "\"$x\" \\\n", 0},
		{"echo ) (", "*", 2},
	} {
		out, status := g.Try(c.lines)
		if status != c.status || out != c.out && c.out != "*" {
			t.Errorf("%.40q: status %d, %.80q (%d bytes)", c.lines, status, out, len(out))
		}
	}
}

// Two guests, one on a bridge and one behind a veth, and a host beside them.
func TestLinks(t *testing.T) {
	n := netns.New(t)
	sw, a, b := n.Switch("sw"), n.Host("a"), n.Host("b")
	n.Plug(a, "10.0.0.1/24", sw)
	veth, _ := n.Plug(b, "", sw)
	on := Boot(t, sw, Config{Link: "br0", Addr: "10.0.0.2/24"})
	behind := Boot(t, b, Config{Link: veth, Addr: "10.0.0.3/24"})
	a.Ping("10.0.0.2", 1)
	a.Ping("10.0.0.3", 1)
	on.Run("ping -c 1 -W 2 10.0.0.3")
	behind.Run("ping -c 1 -W 2 10.0.0.2")

	// The bridge has seen each behind its port.
	for _, g := range []struct{ mac, port string }{{on.MAC, on.TAP}, {behind.MAC, "eth1"}} {
		if out := sw.Run("bridge", "fdb", "show", "dev", g.port); !strings.Contains(out, g.mac) {
			t.Errorf("%s is not behind %s:\n%s", g.mac, g.port, out)
		}
	}
}

// A guest may have more of the kernel's modules, and programs with their libraries.
func TestMore(t *testing.T) {
	h := netns.New(t).Host("a")
	g := Boot(t, h, Config{Modules: []string{"vxlan"}, Programs: map[string]string{"/opt/sum": "sha224sum"}})
	g.Run("ip link add vx0 type vxlan id 1 dstport 4789 local 10.0.0.1 remote 10.0.0.2")
	if out := g.Run("echo -n | /opt/sum"); !strings.HasPrefix(out, "d14a028c2a3a2bc9476102bb288234c415a2b01f828ea62ac5b3e42f") {
		t.Errorf("SHA-224 of nothing: %s", out)
	}
}

// TestBreaks is what breaks runs in a process of its own.
func TestBreaks(t *testing.T) {
	how := os.Getenv("QEMU_TEST_BREAKS")
	if how == "" {
		t.Skip("runs only for TestNothingIsLeft")
	}
	h := netns.New(t).Host("a")
	g := Boot(t, h, Config{})
	fmt.Printf("\nguest: %d %s\n", g.proc.PID(), h.NS)
	switch how {
	case "command":
		g.Run("false")
	case "kernel":
		g.Try("echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger")
	case "panic":
		panic("now")
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
}

func TestNothingIsLeft(t *testing.T) {
	netns.RequireRoot(t)
	require(t)
	for _, c := range []struct{ how, message string }{
		{"command", "false: status 1"},
		{"kernel", "Kernel panic - not syncing: sysrq triggered crash"}, // QEMU ends, and the test at once
		{"panic", "panic: now"},
		{"kill", ""},
	} {
		t.Run(c.how, func(t *testing.T) {
			start := time.Now()
			pid, ns, out := breaks(t, c.how)
			check.True(t, strings.Contains(out, c.message), "no message %q:\n%s", c.message, out)
			if took := time.Since(start); took > BootTimeout {
				t.Errorf("it took %v", took)
			}
			if c.how == "kill" { // the next test process removes it
				if out, err := again(t, "").CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			}
			for end := time.Now().Add(5 * time.Second); alive(pid); time.Sleep(5 * time.Millisecond) {
				if time.Now().After(end) {
					t.Errorf("process %d is left", pid)
					syscall.Kill(pid, syscall.SIGKILL)
					break
				}
			}
			check.True(t, check.Err(os.Stat("/run/netns/"+ns)) != nil, "namespace %s is left", ns)
		})
	}
}

// alive reports whether a process is a QEMU that still runs.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // PID (NAME) STATE ...
	return err == nil && strings.Contains(string(stat), "(qemu") && !strings.Contains(string(stat), ") Z ")
}

// again prepares this test program once more.
func again(t *testing.T, how string) *exec.Cmd {
	run := "^TestBreaks$"
	if how == "" {
		run = "^TestSweep$"
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+run, "-test.v")
	c.Env = append(os.Environ(), "QEMU_TEST_BREAKS="+how)
	c.WaitDelay = time.Second
	return c
}

// TestSweep makes a network, which sweeps those of ended processes.
func TestSweep(t *testing.T) { netns.New(t) }

func breaks(t *testing.T, how string) (pid int, ns, out string) {
	t.Helper()
	text, err := again(t, how).CombinedOutput()
	check.Need(t, err != nil, "it did not break:\n%s", text)
	for line := range strings.Lines(string(text)) {
		if w := strings.Fields(line); len(w) == 3 && w[0] == "guest:" {
			pid, _ = strconv.Atoi(w[1])
			return pid, w[2], string(text)
		}
	}
	t.Fatalf("it made no guest:\n%s", text)
	return 0, "", ""
}
