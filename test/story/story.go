package story

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/test/install"
)

// patience is how long any one thing may take that the operator or Kubernetes has to do.
const patience = 60 * time.Second

const (
	poolsPath    = "/apis/gpupool.dev/v1alpha1/gpupools"
	profilesPath = "/apis/gpupool.dev/v1alpha1/workloadprofiles"
)

// teller tells the story.
type teller struct {
	client client.Client
	screen *screen
}

// Tell tells the story on a cluster that has the Fleet and a running operator. The rights of config are an
// administrator's.
func Tell(ctx context.Context, config *rest.Config, out io.Writer) error {
	scheme := runtime.NewScheme()
	err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), resourcev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	s, err := newScreen(out, config)
	if err != nil {
		return err
	}
	t := teller{client: c, screen: s}
	for _, chapter := range []func(context.Context) error{
		t.pools, t.profiles, t.training, t.bank, t.parts, t.legacy, t.release,
	} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pools: what do I have?
func (t teller) pools(ctx context.Context) error {
	t.screen.say("GpuPools, applied from config/samples, become DeviceClasses, and their devices are counted")
	if err := t.sample(ctx, "gpupool_h100.yaml", "gpupool_nvidia-gpu.yaml", "gpupool_mig-1g.yaml", "gpupool_mi300x.yaml",
		"gpupool_hami-h100.yaml", "gpupool_legacy-gpu.yaml"); err != nil {
		return err
	}
	if err := errors.Join(
		t.pool(ctx, "h100", "16 total, 0 allocated, 16 available, 0 unavailable"),
		t.pool(ctx, "nvidia-gpu", "25 total, 0 allocated, 25 available, 0 unavailable"),
		t.pool(ctx, "mi300x", "8 total, 0 allocated, 8 available, 0 unavailable"),
	); err != nil {
		return err
	}
	if err := t.screen.table(ctx, "get gpupools -o wide", poolsPath); err != nil {
		return err
	}
	class := &resourcev1.DeviceClass{}
	if err := t.client.Get(ctx, client.ObjectKey{Name: "h100.gpupool.dev"}, class); err != nil {
		return fmt.Errorf("reading the DeviceClass: %w", err)
	}
	return t.screen.spec("get deviceclass h100.gpupool.dev -o yaml", class)
}

// profiles: what does a workload get?
func (t teller) profiles(ctx context.Context) error {
	t.screen.say("WorkloadProfiles become ResourceClaimTemplates in the chosen namespaces")
	for name, team := range map[string]string{
		"llm": "research", "vision": "research", "bank-scoring": "scoring", "notebooks": "", "serving": "", "rdma": "", "old-apps": "",
	} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if team != "" {
			namespace.Labels = map[string]string{"team": team}
		}
		if err := t.client.Create(ctx, namespace); err != nil {
			return fmt.Errorf("creating namespace %s: %w", name, err)
		}
	}
	nics := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: sriov}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "` + sriov + `"`}}},
	}}
	if err := t.client.Create(ctx, nics); err != nil { // the NIC driver's own chart brings it
		return fmt.Errorf("creating the NICs' DeviceClass: %w", err)
	}
	if err := t.sample(ctx, "workloadprofile_train-8xh100.yaml", "workloadprofile_h100-or-mi300x.yaml",
		"workloadprofile_scoring-4gpu.yaml", "workloadprofile_mig-1g.yaml", "workloadprofile_quarter-h100.yaml",
		"workloadprofile_gpu-with-nic.yaml"); err != nil {
		return err
	}
	if err := errors.Join(
		t.profile(ctx, "train-8xh100", 2), t.profile(ctx, "h100-or-mi300x", 2), t.profile(ctx, "scoring-4gpu", 1),
		t.profile(ctx, "mig-1g", 1), t.profile(ctx, "quarter-h100", 1), t.profile(ctx, "gpu-with-nic", 1),
	); err != nil {
		return err
	}
	if err := t.screen.table(ctx, "get workloadprofiles", profilesPath); err != nil {
		return err
	}
	return t.screen.table(ctx, "get resourceclaimtemplates -A", "/apis/resource.k8s.io/v1/resourceclaimtemplates")
}

// training: what is used, and why is this pod pending?
func (t teller) training(ctx context.Context) error {
	t.screen.say("Three trainings ask for 8 H100 each; there are two such nodes. A fourth takes MI300X if need be")
	t.screen.note("All that an application team writes: resourceClaimTemplateName: train-8xh100")
	if err := t.deploy(ctx, "llm", "train", "train-8xh100", 3); err != nil {
		return err
	}
	if err := t.running(ctx, "llm", "train", 2); err != nil {
		return err
	}
	if err := t.deploy(ctx, "vision", "train-anywhere", "h100-or-mi300x", 1); err != nil {
		return err
	}
	if err := t.running(ctx, "vision", "train-anywhere", 1); err != nil {
		return err
	}
	if err := errors.Join(
		t.claims(ctx, "h100", 2, 1),
		t.pool(ctx, "mi300x", "8 total, 8 allocated, 0 available, 0 unavailable"),
	); err != nil {
		return err
	}
	if err := t.screen.table(ctx, "get gpupools", poolsPath); err != nil {
		return err
	}
	if err := t.screen.table(ctx, "get pods -n llm", "/api/v1/namespaces/llm/pods"); err != nil {
		return err
	}
	return t.pendingPod(ctx, "llm", "train")
}

// bank: the old way and the DRA way.
func (t teller) bank(ctx context.Context) error {
	t.screen.say("A bank's model needs 4 GPUs with 16 GB and compute capability 8.0 or more")
	t.screen.note(`
The old way names products by hand, one Deployment for each, and is wrong as soon as a new card arrives:
    nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}
    resources: {limits: {nvidia.com/gpu: 4}}
The DRA way says what is needed, once: the WorkloadProfile scoring-4gpu. T4 cards have the memory and not the
capability, so no pod lands there.`)
	if err := t.deploy(ctx, "bank-scoring", "scoring", "scoring-4gpu", 2); err != nil {
		return err
	}
	if err := t.running(ctx, "bank-scoring", "scoring", 1); err != nil {
		return err
	}
	if err := t.claims(ctx, "nvidia-gpu", 1, 1); err != nil {
		return err
	}
	return t.screen.table(ctx, "get pods -n bank-scoring -o wide", "/api/v1/namespaces/bank-scoring/pods",
		"IP", "Nominated Node", "Readiness Gates")
}

// parts: a partition of a card, and a share of one.
func (t teller) parts(ctx context.Context) error {
	t.screen.say("Notebooks take MIG partitions; an inference service takes quarters of shared H100s")
	if err := errors.Join(
		t.deploy(ctx, "notebooks", "notebook", "mig-1g", 3),
		t.deploy(ctx, "serving", "inference", "quarter-h100", 5),
	); err != nil {
		return err
	}
	if err := errors.Join(t.running(ctx, "notebooks", "notebook", 3), t.running(ctx, "serving", "inference", 5)); err != nil {
		return err
	}
	if err := errors.Join(
		t.claims(ctx, "mig-1g", 3, 0),
		t.pool(ctx, "hami-h100", "2 total, 2 allocated, 0 available, 0 unavailable"),
	); err != nil {
		return err
	}
	return t.screen.table(ctx, "get gpupools", poolsPath)
}

// legacy: pods that know nothing of claims.
func (t teller) legacy(ctx context.Context) error {
	t.screen.say("A pod that was written for a device plugin runs unchanged")
	t.screen.note("resources: {limits: {example.com/gpu: 1}}, by the pool's extendedResourceName")
	limits := corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	if err := t.deployPods(ctx, "old-apps", "encode", 1, corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "registry.example.com/encode", Resources: corev1.ResourceRequirements{Limits: limits},
	}}}); err != nil {
		return err
	}
	if err := t.running(ctx, "old-apps", "encode", 1); err != nil {
		return err
	}
	return t.claims(ctx, "legacy-gpu", 1, 0)
}

// release: numbers move.
func (t teller) release(ctx context.Context) error {
	t.screen.say("Trainings end: the bank's second pod finds room, and a GPU with a NIC on its PCIe root")
	if err := t.scale(ctx, "llm", "train", 0); err != nil {
		return err
	}
	if err := t.running(ctx, "bank-scoring", "scoring", 2); err != nil {
		return err
	}
	if err := t.deploy(ctx, "rdma", "transfer", "gpu-with-nic", 1); err != nil {
		return err
	}
	if err := t.running(ctx, "rdma", "transfer", 1); err != nil {
		return err
	}
	if err := errors.Join(
		t.pool(ctx, "h100", "16 total, 5 allocated, 11 available, 0 unavailable"),
		t.claims(ctx, "h100", 1, 0), t.claims(ctx, "nvidia-gpu", 2, 0), t.claims(ctx, "legacy-gpu", 1, 0),
	); err != nil {
		return err
	}
	if err := t.screen.table(ctx, "get gpupools", poolsPath); err != nil {
		return err
	}
	return t.screen.table(ctx, "get workloadprofiles", profilesPath)
}

func (t teller) sample(ctx context.Context, files ...string) error {
	for _, file := range files {
		if err := install.File(ctx, t.client, filepath.Join(install.Root(), "config", "samples", file)); err != nil {
			return err
		}
		fmt.Fprintf(t.screen.out, "$ kubectl apply --server-side -f config/samples/%s\n", file)
	}
	return nil
}

// deploy makes a Deployment whose pods each take a claim from a template.
func (t teller) deploy(ctx context.Context, namespace, name, template string, replicas int32) error {
	return t.deployPods(ctx, namespace, name, replicas, corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "main", Image: "registry.example.com/" + name,
			Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}},
		}},
		ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To(template)}},
	})
}

func (t teller) deployPods(ctx context.Context, namespace, name string, replicas int32, pods corev1.PodSpec) error {
	labels := map[string]string{"app": name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pods},
		},
	}
	if err := t.client.Create(ctx, deployment); err != nil {
		return fmt.Errorf("creating Deployment %s: %w", name, err)
	}
	return nil
}

func (t teller) scale(ctx context.Context, namespace, name string, replicas int32) error {
	deployment := &appsv1.Deployment{}
	if err := t.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, deployment); err != nil {
		return fmt.Errorf("reading Deployment %s: %w", name, err)
	}
	patch := client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Replicas = &replicas
	if err := t.client.Patch(ctx, deployment, patch); err != nil {
		return fmt.Errorf("scaling Deployment %s: %w", name, err)
	}
	fmt.Fprintf(t.screen.out, "$ kubectl scale -n %s deployment/%s --replicas=%d\n", namespace, name, replicas)
	return nil
}

// pendingPod prints what the scheduler says of the pod that waits.
func (t teller) pendingPod(ctx context.Context, namespace, app string) error {
	pods := &corev1.PodList{}
	if err := t.client.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{"app": app}); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	for i := range pods.Items {
		for _, c := range pods.Items[i].Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				fmt.Fprintf(t.screen.out, "The scheduler says of %s: %s\n", pods.Items[i].Name, c.Message)
			}
		}
	}
	return nil
}

// until waits for a state. The error is what the state lacked last.
func until(ctx context.Context, state func(context.Context) error) error {
	var lacks error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := state(ctx)
		if ctx.Err() == nil { // out of patience in the middle of a request, the former answer tells more
			lacks = err
		}
		return err == nil, nil
	})
	if err != nil {
		return errors.Join(lacks, context.Cause(ctx))
	}
	return nil
}
