"""Which file goes where in the layout of nine wings: PLAN[new path] = old paths that become it."""
import os
from pathlib import Path
ROOT=Path(os.environ.get("LAYOUT_ROOT",".")).resolve()
def W(wing, **files):
    for k,v in files.items():
        PLAN[f'{wing}/{k}.py']=[s if s.endswith('.py') else s+'.py' for s in v.split()]
PLAN={}
W('kernels', elimination='kernels/elimination kernels/elimination_order', arrays='kernels/columns threads', compiled='kernels/compiled', draws='kernels/draws',
  orders='kernels/orders kernels/orders_moves kernels/orders_search', paths='kernels/cycles kernels/shortest_cycles kernels/heavier_paths kernels/triples',
  newton_blocks='kernels/surrogate_newton kernels/gains_to_all kernels/differences', circulation='kernels/circulation', graded_pairs='kernels/graded_pairs',
  near_pairs='kernels/near_blocks kernels/near_columns', tree_walks='kernels/tree_walks', subset_gains='kernels/subset_gains kernels/centred_rows')
W('preferences', arguments='arguments', labels='labels', counts='tally counted', ragged='listing', values='log/rejects log/values', comparisons='log/checked log/compared', lists='log/gathered log/listed',
  layouts='log/layouts', frames='log/columns frames', judgments='judgments', preferences='preferences', sampling='sampling', graphs='graphs', connectivity='connectivity differences agreement')
W('io/log', disk='disk', json_values='json_values', formats='log/formats', layouts='log/finding', tables='log/tables', headers='log/headers', rows='log/rows log/places', preflib='log/preflib', letor='log/judged')
W('io', read='reading')
W('io/engines', counting='engines/counting', columns='engines/columns', sql='engines/sql', duckdb='engines/duckdb engines/watched engines/streams', memory='engines/memory', spark='engines/spark', spark_session='engines/spark_session', spark_sources='engines/spark_sources')
W('io/store', catalogue='store/catalogue', migrations='store/migrations', files='store/files store/lock', commits='store/commits', segments='store/segments store/fingerprint store/contents', known='store/known store/belonging', stored='store/stored store/merging store/agreement', maintenance='store/verifying store/compacting store/exporting')
W('io', ingest='ingesting')
W('ranking', scores='structures/scores structures/gauge structures/existence', adjacency='structures/adjacency', closed_forms='structures/log_odds structures/win_rates structures/least_squares', eigenvector='structures/eigenvector',
  bradley_terry='structures/bradley_terry structures/prior_mean', problem='structures/problem structures/likelihood', newton='structures/newton structures/newton_system structures/conjugate_gradients', dense_newton='structures/dense_newton', elimination='structures/elimination',
  curvature='structures/curvature', plackett_luce='structures/plackett_luce structures/luce_curvature', luce_terms='structures/luce_terms', ranked_lists='structures/rankings structures/cascade', structures='structures/registry',
  kemeny='best_order/kemeny', best_orders='best_order/orders best_order/components best_order/grids best_order/improving best_order/programme',
  standard_errors='uncertainty/standard_errors uncertainty/proportions', contrasts='uncertainty/contrasts', covariance='uncertainty/covariance uncertainty/quasi', large_variances='uncertainty/large uncertainty/eliminated', series='uncertainty/series', bootstrap='uncertainty/bootstrap uncertainty/refits', multinomial='uncertainty/draws',
  intervals='uncertainty/intervals', rank_intervals='uncertainty/rank_intervals', rank='ranking')
W('losses', margins='surrogates/margins', objective='surrogates/objective surrogates/population', surrogates='surrogates/registry surrogates/weights surrogates/choosing', minimise='surrogates/minimise surrogates/smooth', minimum='surrogates/minimum', pieces='surrogates/pieces', argmin_set='surrogates/faces', hinge='surrogates/hinge', newton='surrogates/newton_blocks', gains='gains', expected_gains='surrogates/gains', gains_to_all='surrogates/gains_to_all', graded='surrogates/graded')
W('losses/metrics', metrics='metrics/registry metrics/comparing', conventions='metrics/conventions metrics/gains', judged_lists='metrics/lists metrics/ranked', ndcg='metrics/ndcg', err='metrics/err', auc='metrics/auc metrics/auc_interval', pairwise='metrics/pairwise metrics/kendall metrics/inversions', relevant='metrics/relevant')
W('learning/features', matrix='features/matrix features/alignment', reading='features/reading features/letor', normalising='features/normalising features/moments', streamed='features/streamed', key_index='features/placing features/repeats features/in_order')
W('learning/targets', mean_targets='targets/mean_targets targets/result', log_odds='targets/log_odds', informed='targets/informed')
W('learning/solvers', least_squares='solvers/least_squares solvers/matrices solvers/centred_blocks', grouped_rows='solvers/grouped_rows', edges='solvers/edges', edge_problem='solvers/edge_problem solvers/determined solvers/positive_systems', hinge='solvers/hinge', graded='solvers/graded', stochastic='solvers/stochastic solvers/step_sizes', sampled='solvers/sampled_gains solvers/sampled_losses', rankboost='solvers/rankboost solvers/threshold_rules')
W('learning/rankers', estimator='rankers/estimator rankers/state rankers/linear', kept='rankers/kept', validation='rankers/intake', judged='rankers/judged', regressors='rankers/regressors', aggregation='rankers/aggregation rankers/regression', targeting='rankers/targeting', plans='rankers/plans', residual_fit='rankers/beyond', choosing='rankers/choosing rankers/curve', folds='rankers/folding rankers/concordance', columns='rankers/columns rankers/streaming', edges='rankers/edges rankers/sources', lists='rankers/lists', per_query='rankers/per_query', boosting='rankers/boosting')
W('auditing', transitivity='populations/triples populations/completions populations/neighbours populations/verdicts', shapes='populations/shape populations/cycles populations/tournament', regret='populations/regret', gain_laws='populations/gain_laws populations/cascade_laws',
  cycle_tests='noise/cycle_tests', edge_tests='noise/edge_tests', noise='noise/noise noise/resampling', held_out='noise/held_out',
  stopping='asking/settling asking/settling_draws asking/settling_result', active_pairs='asking/pairs asking/facts asking/gains asking/questions asking/connections asking/votes', scores_covariance='asking/scores_covariance',
  counterexamples='counterexamples/finder counterexamples/known counterexamples/search', small_populations='counterexamples/small_populations counterexamples/small_verdicts',
  audit='auditing/audit auditing/left_out', rows='auditing/rows', verdicts='auditing/minimisers', gain_verdicts='auditing/gain_verdicts', findings='auditing/result auditing/summary')
W('abstention', points='abstention/points abstention/norms abstention/classes abstention/phis', pairs='abstention/pairs abstention/surrogates abstention/judged', near_pairs='abstention/near_pairs abstention/cells abstention/tiles abstention/plain abstention/parts', losses='abstention/losses abstention/sampled', bounds='abstention/bounds abstention/calibration', gaps='abstention/gaps', certificates='abstention/certificates', linear='abstention/linear',
  ranker='abstaining/ranker abstaining/params abstaining/state', rule='abstaining/rule abstaining/rule_choice abstaining/conditional_risk', held_pairs='abstaining/held_pairs abstaining/scorer abstaining/distances', tiers='abstaining/tiers abstaining/partial_orders', risk_coverage='abstaining/risk_coverage')
KEEP=['errors.py','progress.py','__main__.py','__init__.py']
src=ROOT/'src/concordant'
FRESH={f'{k}/__init__.py':f'"""{v}"""\n' for k,v in {
'kernels':'Loops that NumPy cannot do well, compiled by Numba when they are first called and kept on disk.',
'preferences':'From columns of judgments to counted preferences, and from these to batches of comparison graphs.',
'losses':'Convex surrogates that are minimised, and gains.',
'losses/metrics':'Target losses and gains: what a ranking is judged by, one value per query.',
'io':'From files, tables and stores to preferences.',
'io/log':'Files and tables as rows with named columns.',
'io/engines':'Engines count equal rows where the log lies: memory (the plain oracle), DuckDB (the default) and Spark.',
'io/store':'A store of counted judgments on disk that takes in each log exactly once.',
'ranking':'From preferences to a ranking: structure functions, orders of least loss, and how sure they are.',
'learning':'Scoring functions learned from preferences and features.',
'learning/features':'Features of items: matrices with labelled rows, how they are read, normalised and matched.',
'learning/targets':'Regression targets: what a scoring function is fitted to, from the judgments of each query.',
'learning/solvers':'Solvers: how the parameters of a scoring function are found.',
'learning/rankers':'Scoring functions learned from preferences, as scikit-learn estimators.',
'auditing':'Whether preferences, with a loss, can lead to the right order, and what more judgments would settle.',
'abstention':'Ranking with abstention: losses, bounds, and rankers that decline pairs.',
'apps':'What people run: commands, report, exports, service, models on disk, Spark, experiments of the papers.',
}.items()}
DROP=['kernels/__init__.py','log/__init__.py','engines/__init__.py','store/__init__.py','structures/__init__.py','uncertainty/__init__.py','best_order/__init__.py','surrogates/__init__.py','metrics/__init__.py','features/__init__.py','targets/__init__.py','solvers/__init__.py','rankers/__init__.py','populations/__init__.py','noise/__init__.py','asking/__init__.py','counterexamples/__init__.py','auditing/__init__.py','abstention/__init__.py','abstaining/__init__.py']
for k in DROP: pass
RENAME={}; SUFFIX={}; DOC={}; MOVE_DATA={}
def apps(src):
    """apps keep their files, some merged"""
    A={}
    def m(folder,new,groups):
        used=set()
        for k,v in groups.items():
            PLAN[f'{new}/{k}.py']=[f'{folder}/{s}.py' for s in v.split()]; used|={f'{s}.py' for s in v.split()}
        for p in sorted((src/folder).glob('*.py')):
            if p.name not in used: PLAN[f'{new}/{p.name}']=[f'{folder}/{p.name}']
    m('commands','apps/commands',{'saying':'saying interrupts','progress':'progress bars'.split()[0],'scoring':'scoring','reading_log':'reading_log feature_files feature_streams','log_options':'log_options','evaluating':'evaluating one_list','auditing':'auditing audit_tables'})
    m('reporting','apps/report',{'report':'report data page','views':'views beats values','audited':'audited difference_graph','learned':'learned scorer order_curve coverage','in_short':'in_short','annotators':'annotators'})
    m('exporting','apps/export',{'export':'export','card':'card card_figures markdown','search_engines':'singles elasticsearch solr','terms':'terms thresholds','plain_json':'plain_json','onnx':'onnx'})
    m('serving','apps/serve',{'app':'app answers desk','served':'served items rows scoring','requests':'requests','limits':'limits','running':'running protocol','journal':'journal'})
    m('spark','apps/spark',{'frames':'frames tables writing faults','checking':'checking','telling':'telling','spreading':'spreading','learning':'learning learning_plans','learning_sums':'learning_equations learning_targets','learning_features':'learning_features','metrics':'metrics metrics_tables','ranking':'ranking','scoring':'scoring'})
    m('reproduction','apps/reproduction',{'cifar':'cifar cifar_runs cifar_training resnet','digits':'digits small_network pair_profile','abstention':'abstention abstention_report','experiments':'experiments','outcome':'outcome places','table1':'table1 movielens','fig2':'fig2','data':'graded fitting'.split()[0],'fitting':'fitting'})
    m('models','apps/models',{'saving':'saving','directory':'directory','regressors':'regressors trees boosters'})
    m('torch','torch',{})
apps(src)
for k,v in list(PLAN.items()):
    pass

KEEP=[k for k in KEEP if (src/k).exists()]

for k in [k for k,v in PLAN.items() if not all((src/s).exists() for s in v)]:
    PLAN[k]=[s for s in PLAN[k] if (src/s).exists()]
    if not PLAN[k]: del PLAN[k]
