package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// patience is how long a Pod may take.
const patience = 5 * time.Minute

// runtime is a container runtime that speaks CRI.
type runtime struct {
	conn       *grpc.ClientConn
	containers cri.RuntimeServiceClient
	images     cri.ImageServiceClient
	logs       string
}

// exit is how a container ended.
type exit struct {
	Name    string  `json:"name"`
	Code    int32   `json:"code"`
	Reason  string  `json:"reason"`
	Seconds float64 `json:"seconds"` // without the pull
}

func dial(socket, logs string) (*runtime, error) {
	if err := os.MkdirAll(logs, 0o750); err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return &runtime{conn, cri.NewRuntimeServiceClient(conn), cri.NewImageServiceClient(conn), logs}, nil
}

func (r *runtime) close() error { return r.conn.Close() }

// runPod runs a Pod to its end and removes it, also when ctx ends before.
func (r *runtime) runPod(ctx context.Context, pod *object, mounts map[string]*cri.Mount) (ended []exit, err error) {
	undo := context.WithoutCancel(ctx)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	sandbox := sandboxConfig(pod, r.logs)
	made, err := r.containers.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: sandbox})
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	defer func() { err = errors.Join(err, r.remove(undo, made.PodSandboxId)) }()
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		one, err := r.runContainer(ctx, made.PodSandboxId, sandbox, pod.Spec, c, mounts)
		if err != nil {
			return ended, fmt.Errorf("container %s: %w", c.Name, err)
		}
		ended = append(ended, one)
		if one.Code != 0 {
			break
		}
	}
	return ended, nil
}

func (r *runtime) remove(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, stopped := r.containers.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: id})
	_, removed := r.containers.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: id})
	return errors.Join(stopped, removed)
}

func sandboxConfig(pod *object, logs string) *cri.PodSandboxConfig {
	security := pod.Spec.SecurityContext
	return &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: pod.Metadata.Name, Uid: fmt.Sprint(time.Now().UnixNano()), Namespace: "default"},
		LogDirectory: logs,
		Linux: &cri.LinuxPodSandboxConfig{SecurityContext: &cri.LinuxSandboxSecurityContext{
			NamespaceOptions: namespaces(), RunAsUser: number(security.RunAsUser), RunAsGroup: number(security.RunAsGroup),
			SupplementalGroups: groups(security), Seccomp: seccomp(security),
		}},
	}
}

// runContainer pulls what a container needs and runs it to its end.
func (r *runtime) runContainer(ctx context.Context, id string, sandbox *cri.PodSandboxConfig, pod *podSpec, c container, volumes map[string]*cri.Mount) (exit, error) {
	image, err := r.pull(ctx, c.Image)
	if err != nil {
		return exit{}, err
	}
	config := &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: c.Name},
		Image:    &cri.ImageSpec{Image: image, UserSpecifiedImage: c.Image},
		Command:  c.Command, Args: c.Args, LogPath: c.Name,
		Linux: &cri.LinuxContainerConfig{Resources: &cri.LinuxContainerResources{CpuShares: 2}, SecurityContext: containerSecurityOf(pod, c)},
	}
	for _, v := range c.Env {
		config.Envs = append(config.Envs, &cri.KeyValue{Key: v.Name, Value: []byte(v.Value)})
	}
	for _, m := range c.VolumeMounts {
		mount, err := r.mount(ctx, m, volumes)
		if err != nil {
			return exit{}, err
		}
		config.Mounts = append(config.Mounts, mount)
	}
	made, err := r.containers.CreateContainer(ctx, &cri.CreateContainerRequest{PodSandboxId: id, Config: config, SandboxConfig: sandbox})
	if err != nil {
		return exit{}, err
	}
	start := time.Now()
	if _, err := r.containers.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: made.ContainerId}); err != nil {
		return exit{}, err
	}
	status, err := r.await(ctx, made.ContainerId)
	if err != nil {
		return exit{}, err
	}
	return exit{c.Name, status.ExitCode, status.Reason, time.Since(start).Seconds()}, nil
}

func (r *runtime) pull(ctx context.Context, image string) (string, error) {
	pulled, err := r.images.PullImage(ctx, &cri.PullImageRequest{Image: &cri.ImageSpec{Image: image}})
	if err != nil {
		return "", fmt.Errorf("pulling %s: %w", image, err)
	}
	return pulled.ImageRef, nil
}

// mount is a volume as one container has it; the image of an image volume is
// pulled.
func (r *runtime) mount(ctx context.Context, m volumeMount, volumes map[string]*cri.Mount) (*cri.Mount, error) {
	source, ok := volumes[m.Name]
	if !ok {
		return nil, fmt.Errorf("no volume %s", m.Name)
	}
	mount := &cri.Mount{ContainerPath: m.MountPath, HostPath: source.HostPath, Readonly: source.Readonly || m.ReadOnly}
	if source.Image == nil {
		if m.SubPath != "" {
			return nil, fmt.Errorf("sub path of %s: only those of images are known here", m.Name)
		}
		return mount, nil
	}
	image, err := r.pull(ctx, source.Image.Image)
	if err != nil {
		return nil, err
	}
	mount.Image, mount.ImageSubPath = &cri.ImageSpec{Image: image, UserSpecifiedImage: source.Image.UserSpecifiedImage}, m.SubPath
	return mount, nil
}

func (r *runtime) await(ctx context.Context, id string) (*cri.ContainerStatus, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		got, err := r.containers.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: id})
		if err != nil {
			return nil, err
		}
		if got.Status.State == cri.ContainerState_CONTAINER_EXITED {
			return got.Status, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}

func containerSecurityOf(pod *podSpec, c container) *cri.LinuxContainerSecurityContext {
	escalation := c.SecurityContext.AllowPrivilegeEscalation
	return &cri.LinuxContainerSecurityContext{
		RunAsUser: number(pod.SecurityContext.RunAsUser), RunAsGroup: number(pod.SecurityContext.RunAsGroup),
		SupplementalGroups: groups(pod.SecurityContext), Seccomp: seccomp(pod.SecurityContext),
		NoNewPrivs: escalation != nil && !*escalation, ReadonlyRootfs: c.SecurityContext.ReadOnlyRootFilesystem,
		Capabilities:     &cri.Capability{DropCapabilities: c.SecurityContext.Capabilities.Drop},
		NamespaceOptions: namespaces(),
	}
}

func namespaces() *cri.NamespaceOption { return &cri.NamespaceOption{Network: cri.NamespaceMode_NODE} }

func number(n *int64) *cri.Int64Value {
	if n == nil {
		return nil
	}
	return &cri.Int64Value{Value: *n}
}

func groups(security podSecurity) []int64 {
	if security.FSGroup == nil {
		return nil
	}
	return []int64{*security.FSGroup}
}

func seccomp(security podSecurity) *cri.SecurityProfile {
	if security.SeccompProfile.Type == "RuntimeDefault" {
		return &cri.SecurityProfile{ProfileType: cri.SecurityProfile_RuntimeDefault}
	}
	return &cri.SecurityProfile{ProfileType: cri.SecurityProfile_Unconfined}
}
