package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// extract writes an archive into a folder.
func extract(t *testing.T, r io.Reader, dir string) {
	t.Helper()
	for r := tar.NewReader(r); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		must(t, err)
		name := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			must(t, os.MkdirAll(name, h.FileInfo().Mode()))
			continue
		}
		data, err := io.ReadAll(r)
		must(t, err)
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, data, h.FileInfo().Mode()))
	}
}

// loaded returns the image of an architecture, as an engine finds it.
func loaded(t *testing.T, arch string) (v1.Image, *v1.ConfigFile) {
	t.Helper()
	dir := t.TempDir()
	extract(t, bytes.NewReader(read(t, "vxswitch_"+version+"_image.tar")), dir)
	named, err := layout.ImageIndexFromPath(dir)
	must(t, err)
	must(t, validate.Index(named))
	m, err := named.IndexManifest()
	must(t, err)
	if len(m.Manifests) != 1 || m.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "vxswitch:"+version {
		t.Fatalf("the layout has %+v", m.Manifests)
	}
	index, err := named.ImageIndex(m.Manifests[0].Digest)
	must(t, err)
	images, err := partial.FindImages(index, match.Platforms(v1.Platform{OS: "linux", Architecture: arch}))
	must(t, err)
	if len(images) != 1 {
		t.Fatalf("%d images for %s", len(images), arch)
	}
	config, err := images[0].ConfigFile()
	must(t, err)
	if config.Architecture != arch || config.Config.Labels["org.opencontainers.image.version"] != version || len(config.Config.Labels["org.opencontainers.image.revision"]) != 40 {
		t.Errorf("%s: %+v", arch, config)
	}
	return images[0], config
}

// A container of the image runs as its configuration says, with the capabilities that the page asks for: it is healthy,
// vxsctl speaks with it, and SIGTERM ends it.
func TestImage(t *testing.T) {
	netns.RequireRoot(t)
	netns.Tool(t, "setpriv")
	netns.Tool(t, "curl")
	for _, arch := range architectures {
		loaded(t, arch)
	}
	img, config := loaded(t, runtime.GOARCH)
	for name, file := range map[string]string{"as it is": "", "with a file": "../cmd/vxswitchd/configs/mesh/a.json"} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			layers := mutate.Extract(img)
			defer layers.Close()
			extract(t, layers, root)
			h := netns.New(t).Host("node")
			h.Addr("lo", "192.0.2.1/32")
			want := "ready segments=0 ports=0 tunnels=0"
			if file != "" {
				text, err := os.ReadFile(file)
				must(t, err)
				must(t, os.WriteFile(filepath.Join(root, "etc/vxswitch/vxswitchd.json"), text, 0o644))
				want = "ready segments=1 ports=1 tunnels=1"
			}
			args := contain(root, file != "", slices.Concat(config.Config.Entrypoint, config.Config.Cmd, []string{"-metrics", ":9470"}))
			p := h.Start(args[0], args[1:]...)
			p.Want(want)
			if got := h.Run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "http://127.0.0.1:9470/healthz"); got != "200" {
				t.Errorf("/healthz says %q", got)
			}
			var node struct{ Segments []struct{ VNI int } }
			text := h.Run("chroot", root, "/usr/bin/vxsctl", "-json", "config")
			if err := json.Unmarshal([]byte(text), &node); err != nil || (file != "") != (len(node.Segments) == 1) {
				t.Errorf("vxsctl config: %v\n%s", err, text)
			}
			if got := h.Run("chroot", root, "/usr/bin/vxswitchd", "-version"); !strings.HasPrefix(got, "vxswitchd v"+version+" commit ") {
				t.Errorf("-version says %q", got)
			}
			if err := p.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// contain is the command that runs another in a root, as an engine does with --cap-add NET_ADMIN and NET_RAW and
// --device /dev/net/tun: with mounts of its own and few capabilities.
func contain(root string, tun bool, command []string) []string {
	const script = `set -e
root=$1 tun=$2
shift 2
if [ "$tun" = true ]; then
	mkdir -p "$root/dev/net"
	: >"$root/dev/net/tun"
	mount --bind /dev/net/tun "$root/dev/net/tun"
fi
caps=-all,+net_admin,+net_raw,+net_bind_service,+sys_chroot
exec setpriv --no-new-privs --bounding-set=$caps --inh-caps=$caps chroot "$root" "$@"
`
	with := "false"
	if tun {
		with = "true"
	}
	return append([]string{"unshare", "--mount", "--uts", "--ipc", "sh", "-c", script, "sh", root, with}, command...)
}

// The Containerfile makes what the image of a release is: its build builds, and the last stage says the same.
func TestContainerfile(t *testing.T) {
	_, config := loaded(t, runtime.GOARCH)
	text, err := os.ReadFile("Containerfile")
	must(t, err)
	build, last, ok := strings.Cut(string(text), "FROM scratch\n")
	if !ok {
		t.Fatal("no stage from scratch")
	}
	list := func(words []string) string {
		text, _ := json.Marshal(words)
		return strings.ReplaceAll(string(text), ",", ", ")
	}
	want := []string{"ENTRYPOINT " + list(config.Config.Entrypoint), "CMD " + list(config.Config.Cmd)}
	for _, e := range config.Config.Env {
		want = append(want, "ENV "+e)
	}
	for p := range config.Config.ExposedPorts {
		want = append(want, "EXPOSE "+p)
	}
	for _, line := range want {
		if !strings.Contains(last, line+"\n") {
			t.Errorf("no %q", line)
		}
	}
	// The commands of the build, on a copy of the tree.
	out := t.TempDir()
	c := regexp.MustCompile(`(?m)^RUN (.*)$`).FindAllStringSubmatch(build, -1)
	if len(c) != 1 {
		t.Fatalf("%d commands", len(c))
	}
	run := shell(t, filepath.Join(folder, "first", "repository"), strings.ReplaceAll(c[0][1], "/out/", out+"/"))
	if run != "" {
		t.Errorf("the build prints %q", run)
	}
	have := map[string]bool{}
	for _, name := range programs {
		_, err := os.Stat(filepath.Join(out, "usr/bin", name))
		have["usr/bin/"+name] = err == nil
	}
	for _, m := range regexp.MustCompile(`(?m)^COPY (\S+) /(\S+)$`).FindAllStringSubmatch(last, -1) {
		_, err := os.Stat(filepath.Join("..", m[1]))
		have[m[2]] = err == nil
	}
	for _, name := range inImage {
		if !have[name] {
			t.Errorf("it makes no %s", name)
		}
	}
}
