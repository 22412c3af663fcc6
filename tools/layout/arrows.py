"""Arrows between wings, rooms and files as plan.py would have them; prints circles. usage: arrows.py ROOT"""
import sys,os,pathlib
ROOT=pathlib.Path(sys.argv[1]).resolve(); os.environ["LAYOUT_ROOT"]=str(ROOT); sys.path.insert(0,str(pathlib.Path(__file__).parent))
sys.argv[1]=str(ROOT/"src/concordant")
import ast, pathlib, sys, collections
SRC=pathlib.Path(sys.argv[1])
mods={}
for p in SRC.rglob('*.py'):
    r=p.relative_to(SRC).as_posix()[:-3]
    name=r.replace('/','.')
    if name.endswith('.__init__'): name=name[:-9]
    if name=='__init__': name=''
    mods[name]=p
def imports(p):
    out=set()
    for n in ast.walk(ast.parse(p.read_text())):
        if isinstance(n,ast.ImportFrom) and n.module and n.module.split('.')[0]=='concordant':
            m=n.module[11:]
            for a in n.names:
                full=(m+'.'+a.name).lstrip('.')
                out.add(full if full in mods else m)
        elif isinstance(n,ast.Import):
            for a in n.names:
                if a.name.startswith('concordant.'): out.add(a.name[11:])
    return out
G={m:imports(p) for m,p in mods.items()}

import plan as P
def mn(p): 
    r=p[:-3].replace('/','.'); return r[:-9] if r.endswith('.__init__') else r
new={}
for t,ss in P.PLAN.items():
    for s in ss: new[mn(s)]=mn(t)
for k in P.KEEP: new[mn(k)]=mn(k)
new['__init__']=''; new['']=''
def room(m):
    b=m.split('.')
    if b[0] in('io','learning','losses','apps') and len(b)>2: return b[0]+'.'+b[1]
    return b[0]
def wing(m): return m.split('.')[0]
for level,f in (('wing',wing),('room',room),('file',lambda m:m)):
    arr=collections.defaultdict(list)
    for m,ds in G.items():
        if m=='' : continue
        for d in ds:
            if m in new and d in new:
                a,b=f(new[m]),f(new[d])
                if a!=b: arr[a,b].append((m,d))
            elif d not in new: print('?',m,d) if level=='wing' else None
    for (a,b),l in sorted(arr.items()):
        if (b,a) in arr and (a<b): print(level,'BOTH',a,'->',b,len(l),sorted(l)[:6],'| back',len(arr[b,a]),sorted(arr[b,a])[:6])
    # cycles
    from graphlib import TopologicalSorter,CycleError
    g=collections.defaultdict(set)
    for (a,b) in arr: g[a].add(b)
    try: o=list(TopologicalSorter(g).static_order()); print(level,'order',o if level!='file' else 'ok')
    except CycleError as e: print(level,'CYCLE',e.args[1])
