// Bench of vt028_sequential_multiplier: sequential multiplier.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_busy;
    int errortime_busy;
    int errors_done;
    int errortime_done;
    int errors_product;
    int errortime_product;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic        rst_n;
  logic        start;
  logic        is_signed;
  logic [7:0]  a;
  logic [7:0]  b;
  wire         busy_ref;
  wire         busy_dut;
  wire         done_ref;
  wire         done_dut;
  wire  [15:0] product_ref;
  wire  [15:0] product_dut;

  RefModule good1 (
    .clk(clk),
    .rst_n(rst_n),
    .start(start),
    .is_signed(is_signed),
    .a(a),
    .b(b),
    .busy(busy_ref),
    .done(done_ref),
    .product(product_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .rst_n(rst_n),
    .start(start),
    .is_signed(is_signed),
    .a(a),
    .b(b),
    .busy(busy_dut),
    .done(done_dut),
    .product(product_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire         open_busy = busy_ref ^ busy_ref;
  wire         match_busy = (busy_dut ^ open_busy) === (busy_ref ^ open_busy);
  wire         open_done = done_ref ^ done_ref;
  wire         match_done = (done_dut ^ open_done) === (done_ref ^ open_done);
  wire  [15:0] open_product = product_ref ^ product_ref;
  wire         match_product = (product_dut ^ open_product) === (product_ref ^ open_product);
  wire         tb_match = match_busy && match_done && match_product;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_busy) begin
      if (stats1.errors_busy == 0) stats1.errortime_busy = $time;
      stats1.errors_busy = stats1.errors_busy + 1;
    end
    if (!match_done) begin
      if (stats1.errors_done == 0) stats1.errortime_done = $time;
      stats1.errors_done = stats1.errors_done + 1;
    end
    if (!match_product) begin
      if (stats1.errors_product == 0) stats1.errortime_product = $time;
      stats1.errors_product = stats1.errors_product + 1;
    end
  end

  function [7:0] corner(input [2:0] index);
    case (index)
      3'd0: corner = 8'h00;
      3'd1: corner = 8'h01;
      3'd2: corner = 8'h7f;
      3'd3: corner = 8'h80;
      3'd4: corner = 8'h81;
      3'd5: corner = 8'hff;
      3'd6: corner = 8'h55;
      default: corner = 8'haa;
    endcase
  endfunction

  integer i;
  initial begin
    rst_n <= 1'b0;
    start <= 1'b1;
    is_signed <= 1'b1;
    a <= 8'h12;
    b <= 8'h34;
    repeat (2) @(negedge clk);
    start <= 1'b0;
    @(negedge clk) rst_n <= 1'b1;
    repeat (2) @(negedge clk);
    // Corner operands in both modes; the inputs change as soon as they were taken.
    for (i = 0; i < 40; i = i + 1) begin
      start <= 1'b1;
      is_signed <= i[0];
      a <= corner((i < 16) ? i / 2 : $random);
      b <= corner((i < 16) ? (i < 8 ? 3'd3 : 3'd5) : $random);
      @(negedge clk) start <= 1'b0;
      is_signed <= $random;
      a <= $random;
      b <= $random;
      repeat (7) @(negedge clk);
      // Back to back, or one to three cycles later.
      repeat (1 + (i & 1) * ($urandom & 3)) @(negedge clk);
    end
    // Held and random starts while busy; resets in between.
    repeat (350) @(negedge clk) begin
      start <= ($random & 3) != 0;
      is_signed <= $random;
      a <= $random;
      b <= $random;
      rst_n <= ($urandom & 31) != 0;
    end
    @(posedge clk);
    #1 $finish;
  end

  initial begin
    #200000;
    $display("TIMEOUT");
    $finish;
  end

  final begin
    if (stats1.errors_busy != 0)
      $display("Hint: Output 'busy' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_busy, stats1.errortime_busy);
    else
      $display("Hint: Output 'busy' has no mismatches.");
    if (stats1.errors_done != 0)
      $display("Hint: Output 'done' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_done, stats1.errortime_done);
    else
      $display("Hint: Output 'done' has no mismatches.");
    if (stats1.errors_product != 0)
      $display("Hint: Output 'product' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_product, stats1.errortime_product);
    else
      $display("Hint: Output 'product' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
