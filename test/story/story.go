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
	for _, chapter := range []func(context.Context) error{t.pools, t.profiles, t.training, t.bank, t.release} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pools: what do I have?
func (t teller) pools(ctx context.Context) error {
	t.screen.say("GpuPools, applied from config/samples, become DeviceClasses, and their devices are counted")
	if err := t.sample(ctx, "gpupool_h100.yaml", "gpupool_nvidia-gpu.yaml"); err != nil {
		return err
	}
	if err := errors.Join(
		t.pool(ctx, "h100", "16 total, 0 allocated, 16 available, 0 unavailable"),
		t.pool(ctx, "nvidia-gpu", "28 total, 0 allocated, 28 available, 0 unavailable"),
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
	for name, team := range map[string]string{"llm": "research", "vision": "research", "bank-scoring": "scoring"} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}}}
		if err := t.client.Create(ctx, namespace); err != nil {
			return fmt.Errorf("creating namespace %s: %w", name, err)
		}
	}
	if err := t.sample(ctx, "workloadprofile_train-8xh100.yaml", "workloadprofile_scoring-4gpu.yaml"); err != nil {
		return err
	}
	if err := errors.Join(t.profile(ctx, "train-8xh100", 2), t.profile(ctx, "scoring-4gpu", 1)); err != nil {
		return err
	}
	if err := t.screen.table(ctx, "get workloadprofiles", profilesPath); err != nil {
		return err
	}
	return t.screen.table(ctx, "get resourceclaimtemplates -A", "/apis/resource.k8s.io/v1/resourceclaimtemplates")
}

// training: what is used, and why is this pod pending?
func (t teller) training(ctx context.Context) error {
	t.screen.say("Three trainings ask for 8 H100 each; there are two such nodes")
	t.screen.note("All that an application team writes: resourceClaimTemplateName: train-8xh100")
	if err := t.deploy(ctx, "llm", "train", "train-8xh100", 3); err != nil {
		return err
	}
	if err := t.running(ctx, "llm", "train", 2); err != nil {
		return err
	}
	if err := t.claims(ctx, "h100", 2, 1); err != nil {
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
	if err := t.deploy(ctx, "bank-scoring", "scoring", "scoring-4gpu", 3); err != nil {
		return err
	}
	if err := t.running(ctx, "bank-scoring", "scoring", 2); err != nil {
		return err
	}
	if err := t.claims(ctx, "nvidia-gpu", 2, 1); err != nil {
		return err
	}
	if err := t.screen.table(ctx, "get pods -n bank-scoring -o wide", "/api/v1/namespaces/bank-scoring/pods",
		"IP", "Nominated Node", "Readiness Gates"); err != nil {
		return err
	}
	return t.screen.table(ctx, "get workloadprofiles", profilesPath)
}

// release: numbers move.
func (t teller) release(ctx context.Context) error {
	t.screen.say("Trainings end, and the bank's third pod finds room on a node of H100")
	if err := t.scale(ctx, "llm", "train", 1); err != nil {
		return err
	}
	if err := t.running(ctx, "bank-scoring", "scoring", 3); err != nil {
		return err
	}
	if err := t.pool(ctx, "h100", "16 total, 12 allocated, 4 available, 0 unavailable"); err != nil {
		return err
	}
	if err := errors.Join(t.claims(ctx, "h100", 1, 0), t.claims(ctx, "nvidia-gpu", 3, 0)); err != nil {
		return err
	}
	return t.screen.table(ctx, "get gpupools", poolsPath)
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
	labels := map[string]string{"app": name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: "main", Image: "registry.example.com/" + name,
						Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}},
					}},
					ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To(template)}},
				},
			},
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
		lacks = state(ctx)
		return lacks == nil, nil
	})
	if err != nil {
		return errors.Join(lacks, context.Cause(ctx))
	}
	return nil
}
