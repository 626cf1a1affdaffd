package crd_test
import ("testing";"errors"; apierrors "k8s.io/apimachinery/pkg/api/errors")
func TestZZ(t *testing.T){ s:=running(t)
 for _,f:=range readSamples(t){ for _,x:=range f.samples { if x.Refused=="" {continue}; for _,p:=range f.places()[:1] {
  n:=x.Name; if n=="" {n=unique("sample")}
  o:=build(t,p,n,x.content()); err:=s.write(t,o,p,x)
  var st apierrors.APIStatus
  if errors.As(err,&st) && st.Status().Details!=nil { 
   for _,c:=range st.Status().Details.Causes { if c.Field==p.prefix+x.Field || c.Field=="<nil>" {continue}; t.Logf("%s %q: extra %s: %s", f.name,x.Refused,c.Field,c.Message)}
   if len(st.Status().Details.Causes)>1 {t.Logf("   %s %q causes: %v",f.name,x.Refused, err)}
  } else {t.Logf("%s %q: %v",f.name,x.Refused,err)}
 }}}
}
